// Settings: options of commands that may also come from the environment and from a TOML file. A flag wins over the
// environment, that over the file, that over the default. run_cli() applies them after it has parsed the arguments.
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

// Reads one variable; nullopt when it is not set or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

// Values of a TOML file by the option's name ("node-name"; the file may write node_name), as the texts that the option
// takes. A value is a string, whole number or boolean, or an array of these; `entry` is an array of tables, each given
// as the JSON object that --entry takes. Throws BadUsage naming the file and the line or key at fault, such as a key
// that is no setting. parse_config() opens no file: `path` is for its errors.
using ConfigFile = std::map<std::string, std::vector<std::string>>;
ConfigFile read_config_file(const std::string& path);
ConfigFile parse_config(const std::string& toml, const std::string& path);

// Whether an option (its name without dashes in front) is a setting: one of a fixed list, without --json or
// --dashboard. Its variable is TOCSIN_ and its name in capitals: --node-name, TOCSIN_NODE_NAME.
bool is_setting(const std::string& option);
std::string variable_of(const std::string& option);

// Gives every setting of `command` that no flag has set its value from the environment or else from the file that
// --config or TOCSIN_CONFIG names, if the command has the option --config. Throws BadUsage saying where a bad value
// came from. REQUIRES: the arguments are parsed.
void apply_settings(CLI::App& command, const Environment& environment);

// "a,b" of TOCSIN_DATABASE: a comma separates where a new connection string begins (scheme://, name=scheme:// or key=),
// so that one with several hosts ("host=a,b") stays whole.
std::vector<std::string> split_databases(const std::string& text);

}  // namespace tocsin
