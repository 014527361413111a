// What the commands of the command line share, and the functions that add each command. make_app() builds the whole
// command line from them; run_cli() (cli.h) parses and runs it. Thread: the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "cli/rest_client.h"

namespace tocsin {

// The command that the arguments name. Set while the arguments are parsed. run_cli() calls `run` afterwards, when the
// options of `command` have their values from arguments, environment and file.
struct Chosen {
  CLI::App* command = nullptr;
  std::function<int()> run;  // returns the exit code
};

// Options of every command that speaks to a node.
struct ClientOptions {
  Connection connection;
  bool json = false;  // print the server's JSON
};

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& summary, const std::string& footer);
// Adds --url, --token, --timeout, --config and --json.
void add_client_options(CLI::App& command, ClientOptions& options);

// For ->check() of an option: return the error message, or "" if the value is valid.
std::string not_a_duration(const std::string& text);
std::string not_a_job_id(const std::string& text);
std::string not_blank(const std::string& text);

// An option that takes a number from `least` to `most`.
template <class T>
CLI::Option* add_number(CLI::App& command, const char* name, T& value, const char* what, std::type_identity_t<T> least,
                        std::type_identity_t<T> most) {
  return command.add_option(name, value, what)->check(CLI::Range(least, most))->option_text("N");
}

// Add an option that takes a duration, such as 15s (cli/duration.h). This one keeps the duration as text.
inline CLI::Option* add_duration(CLI::App& command, const char* name, std::string& value, const char* what) {
  return command.add_option(name, value, what)->check(not_a_duration)->option_text("TIME");
}
CLI::Option* add_duration(CLI::App& command, const char* name, std::chrono::milliseconds& value, const char* what);
// `shortest`, `longest`: the range of values, each written like 500ms.
CLI::Option* add_duration(CLI::App& command, const char* name, std::chrono::milliseconds& value, const char* what,
                          const char* shortest, const char* longest);

// Makes `run` the function of the command, with `options` as its argument; `options` live until `run` has returned.
template <class Options>
void on_run(CLI::App* command, Chosen& chosen, std::shared_ptr<Options> options, int (*run)(Options&)) {
  command->callback([command, &chosen, options, run] { chosen = {command, [options, run] { return run(*options); }}; });
}

// Each adds a command, or a group of commands, to `root`. At parsing the chosen command sets `chosen`, which must
// outlive `root`.
void add_serve_command(CLI::App& root, Chosen& chosen);
void add_migrate_command(CLI::App& root, Chosen& chosen);
void add_job_commands(CLI::App& root, Chosen& chosen);
void add_type_commands(CLI::App& root, Chosen& chosen);
void add_cluster_commands(CLI::App& root, Chosen& chosen);
void add_bench_command(CLI::App& root, Chosen& chosen);
void add_shard_commands(CLI::App& root, Chosen& chosen);
void add_report_command(CLI::App& root, Chosen& chosen);
void add_top_command(CLI::App& root, Chosen& chosen);

// The whole command line; `chosen` must outlive it.
std::unique_ptr<CLI::App> make_app(Chosen& chosen);

// The JSON text of an argument: the argument itself, the contents of the file for "@path", or standard input for "-".
// Throws BadUsage if the file cannot be read or the text is not JSON; the message names `option`.
std::string json_argument(const std::string& text, const std::string& option);

}  // namespace tocsin
