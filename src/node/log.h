// The node's log: one line per event on standard error, as text or as JSON objects.
#pragma once

#include <string>

namespace tocsin {

// level: trace, debug, info, warn, error; format: text or json.
void start_log(const std::string& level, const std::string& format);

}  // namespace tocsin
