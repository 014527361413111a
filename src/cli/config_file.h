// Settings: options that may also come from the environment and from a file. Flag > environment > file > default.
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

// Wrong arguments or settings: exit code 2.
struct BadUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reads one variable; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

// Values of a TOML file by the option's name ("node-name"; the file may write node_name), as the texts that the option
// takes. A value is a string, whole number or boolean, or an array of these; `entry` is an array of tables, each kept
// as JSON. Throws BadUsage naming the file and the line or key at fault, such as a key that is no setting.
using ConfigFile = std::map<std::string, std::vector<std::string>>;
ConfigFile read_config_file(const std::string& path);
ConfigFile parse_config(const std::string& toml, const std::string& path);

// Whether an option (its name without dashes) is a setting. Its variable is TOCSIN_ and its name in capitals:
// --node-name, TOCSIN_NODE_NAME.
bool is_setting(const std::string& option);
std::string variable_of(const std::string& option);

// Gives every setting of `command` that no flag has set its value from the environment or else from the file that
// --config or TOCSIN_CONFIG names. Throws BadUsage saying where a bad value came from. REQUIRES: the arguments are
// parsed.
void apply_settings(CLI::App& command, const Environment& environment);

// "a,b" of TOCSIN_DATABASE: a comma separates where a new connection string begins (scheme://, name=scheme:// or key=),
// so that one with several hosts ("host=a,b") stays whole.
std::vector<std::string> split_databases(const std::string& text);

}  // namespace tocsin
