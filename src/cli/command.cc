#include "cli/command.h"

#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/config_file.h"
#include "cli/duration.h"

namespace tocsin {

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& summary,
                      const std::string& footer) {
  CLI::App* command = parent.add_subcommand(name, summary);
  if (!footer.empty()) command->footer(footer);
  return command;
}

void add_client_options(CLI::App& command, ClientOptions& options) {
  constexpr const char* kGroup = "Connection";
  Connection& connection = options.connection;
  command.add_flag("--json", options.json, "Print the server's JSON");
  command.add_option("--url", connection.url, "Node to speak to (http://127.0.0.1:7070)")
      ->option_text("URL")
      ->group(kGroup);
  command.add_option("--token", connection.token, "Bearer token; better in TOCSIN_TOKEN")
      ->option_text("TOKEN")
      ->group(kGroup);
  add_duration(command, "--timeout", connection.timeout, "How long to wait for an answer (30s)")->group(kGroup);
  command.add_option("--config", "TOML file with url, token or timeout")
      ->option_text("FILE")
      ->expected(1)
      ->group(kGroup);
}

std::string not_a_duration(const std::string& text) {
  return parse_duration(text) ? "" : "'" + text + "' is no duration like 500ms, 15s, 15m, 24h or 7d";
}

CLI::Option* add_duration(CLI::App& command, const char* name, std::chrono::milliseconds& value, const char* what) {
  const auto keep = [&value](const std::string& text) { value = *parse_duration(text); };
  return command.add_option_function<std::string>(name, keep, what)->check(not_a_duration)->option_text("TIME");
}

CLI::Option* add_duration(CLI::App& command, const char* name, std::chrono::milliseconds& value, const char* what,
                          const char* shortest, const char* longest) {
  const auto keep = [&value](const std::string& text) { value = *parse_duration(text); };
  const auto check = [=](const std::string& text) -> std::string {
    const auto length = parse_duration(text);
    if (length && *length >= *parse_duration(shortest) && *length <= *parse_duration(longest)) return "";
    return "'" + text + "' is no duration from " + shortest + " to " + longest;
  };
  return command.add_option_function<std::string>(name, keep, what)->check(check)->option_text("TIME");
}

std::string not_a_job_id(const std::string& text) {
  const bool is_id = !text.empty() && text.size() <= 19 && text.find_first_not_of("0123456789") == std::string::npos;
  return is_id ? "" : "'" + text + "' is no job id: those are digits";
}

std::string not_blank(const std::string& text) { return text.empty() ? "it is empty" : ""; }

std::string json_argument(const std::string& text, const std::string& option) {
  std::string json = text;
  if (text == "-") {
    json.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else if (text.starts_with('@')) {
    std::ifstream in(text.substr(1), std::ios::binary);
    if (!in) throw BadUsage(option + ": cannot read " + text.substr(1));
    json.assign(std::istreambuf_iterator<char>(in), {});
  }
  if (!Json::accept(json))
    throw BadUsage(option + " is not valid JSON" + (text == json ? "; text needs quotes: '\"like this\"'" : ""));
  return json;
}

}  // namespace tocsin
