// Settings: options of commands that may also come from the environment or from a TOML file. A flag wins over the
// environment, the environment over the file, and the file over the default. run_cli() (cli.h) applies them after it
// has parsed the arguments. Thread: the main thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tocsin {

// Wrong arguments or settings. run_cli() catches it: it prints the message and exits with code 2.
struct BadUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reads one environment variable; nullopt: it is not set, or empty. process_environment() reads the process's own.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

// The values of a TOML file by option name, as texts that the option takes. The option "node-name" may be written
// node_name in the file. A value is a string, a whole number or a boolean, or an array of these; `entry` is an array of
// tables, each of which becomes the JSON object that --entry takes.
//
// Both functions throw BadUsage if the file cannot be read, is not TOML, or has a key that is no setting; the message
// names the file with the line or key. parse_config() opens no file; `path` is only for its messages.
using ConfigFile = std::map<std::string, std::vector<std::string>>;
ConfigFile read_config_file(const std::string& path);
ConfigFile parse_config(const std::string& toml, const std::string& path);

// Whether an option may come from the environment or the file: a fixed list, which most options of single commands,
// such as --json, are not in. `option`: its name without leading dashes. variable_of(): its environment variable, such
// as TOCSIN_NODE_NAME for "node-name".
bool is_setting(const std::string& option);
std::string variable_of(const std::string& option);

// Gives a value to every setting of `command` that no flag has set: from the environment, otherwise from the file. The
// file is named by --config or TOCSIN_CONFIG; it is read only if the command has the option --config. Throws BadUsage;
// the message says where the bad value came from. REQUIRES: the arguments are parsed.
void apply_settings(CLI::App& command, const Environment& environment);

// Splits the value of TOCSIN_DATABASE, "a,b", into connection strings. Only a comma before the beginning of a
// connection string (scheme://, name=scheme:// or key=) separates, so that a string with several hosts ("host=a,b")
// stays whole.
std::vector<std::string> split_databases(const std::string& text);

}  // namespace tocsin
