#include "cli/config_file.h"

#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/text.h"

namespace tocsin {
namespace {

constexpr auto kSettings = std::to_array<std::string_view>({"database",
                                                            "listen",
                                                            "token-file",
                                                            "node-name",
                                                            "shards",
                                                            "migrate",
                                                            "max-attribute-bytes",
                                                            "allow-webhook",
                                                            "retain",
                                                            "api-threads",
                                                            "claimers",
                                                            "db-pool",
                                                            "workers",
                                                            "sql-workers",
                                                            "queue-capacity",
                                                            "drain-timeout",
                                                            "log-level",
                                                            "log-format",
                                                            "url",
                                                            "token",
                                                            "timeout",
                                                            "entry",
                                                            "webhook-ca",
                                                            "webhook-connections",
                                                            "async-claims",
                                                            "heartbeat-timeout"});

std::string scalar(const toml::node& value, const std::string& where) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* number = value.as_integer()) return std::to_string(number->get());
  if (const auto* flag = value.as_boolean()) return flag->get() ? "true" : "false";
  throw BadUsage(where + " must be a string, a whole number or true/false");
}

std::vector<std::string> values_of(const toml::node& value, const std::string& where) {
  const auto* list = value.as_array();
  if (!list) return {scalar(value, where)};
  std::vector<std::string> values;
  for (const auto& item : *list) values.push_back(scalar(item, where));
  return values;
}

// Tables of [[entry]], each as a JSON object: what --entry takes.
std::vector<std::string> tables_of(const toml::node& value, const std::string& where) {
  std::vector<std::string> tables;
  const auto* list = value.as_array();
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const auto* table = list->get(i)->as_table();
    if (!table) throw BadUsage(where + " must be tables, written as [[entry]]");
    std::ostringstream text;
    text << toml::json_formatter(*table);
    tables.push_back(text.str());
  }
  if (!list) throw BadUsage(where + " must be tables, written as [[entry]]");
  return tables;
}

// An option is known by its first long name, without the dashes.
std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : option.get_lnames().front();
}

void give(CLI::Option& option, const std::vector<std::string>& values, const std::string& source) {
  try {
    if (values.size() > 1 && option.get_expected_max() <= 1) throw BadUsage(source + ": takes one value");
    for (const std::string& value : values) option.add_result(value);
    if (!values.empty()) option.run_callback();
  } catch (const CLI::Error& error) {
    throw BadUsage(source + ": " + error.what());
  }
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets variables
  if (!value || !*value) return std::nullopt;     // empty is the shell's usual way to unset for one command
  return value;
}

bool is_setting(const std::string& option) {
  return std::find(kSettings.begin(), kSettings.end(), option) != kSettings.end();
}

std::string variable_of(const std::string& option) {
  std::string name = "TOCSIN_" + option;
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

ConfigFile parse_config(const std::string& text, const std::string& path) {
  toml::table table;
  try {
    table = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    throw BadUsage(path + ":" + std::to_string(error.source().begin.line) + ": " + std::string(error.description()));
  }
  ConfigFile file;
  for (const auto& [key, value] : table) {
    std::string name(key.str());
    std::replace(name.begin(), name.end(), '_', '-');
    const std::string where = path + ": '" + printable(key.str()) + "'";
    if (!is_setting(name)) throw BadUsage(where + " is no setting; see tocsin serve --help");
    if (!file.emplace(name, name == "entry" ? tables_of(value, where) : values_of(value, where)).second)
      throw BadUsage(where + " is given twice");
  }
  return file;
}

ConfigFile read_config_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || text.bad()) throw BadUsage("cannot read the configuration file " + path);
  return parse_config(text.str(), path);
}

void apply_settings(CLI::App& command, const Environment& environment) {
  ConfigFile file;
  std::string path;
  if (const auto* option = command.get_option_no_throw("--config")) {
    path = option->count() > 0 ? option->as<std::string>() : environment("TOCSIN_CONFIG").value_or("");
    if (!path.empty()) file = read_config_file(path);
  }
  for (CLI::Option* option : command.get_options()) {
    const std::string name = name_of(*option);
    if (!is_setting(name) || option->count() > 0) continue;
    if (const auto value = environment(variable_of(name)))
      give(*option, name == "database" ? split_databases(*value) : std::vector{*value}, variable_of(name));
    else if (const auto line = file.find(name); line != file.end())
      give(*option, line->second, std::string(path).append(": '").append(name).append("'"));
  }
}

std::vector<std::string> split_databases(const std::string& text) {
  const auto begins_one = [](std::string_view rest) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const auto is_url = [](std::string_view word) {
      return word.starts_with("postgres://") || word.starts_with("postgresql://");
    };
    if (is_url(rest)) return true;
    const std::size_t name = std::min(rest.find('='), rest.size());
    if (name > 0 && rest.find_first_of("/ :@,") > name && name < rest.size() && is_url(rest.substr(name + 1)))
      return true;
    const std::size_t word = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    return word != 0 && word != std::string_view::npos && rest[word] == '=';
  };
  std::vector<std::string> databases;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] != ',' || !begins_one(std::string_view(text).substr(i + 1)))) continue;
    databases.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return databases;
}

}  // namespace tocsin
