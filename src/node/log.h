// The log of the process: one line per event on standard error, as text or as JSON objects. Code writes to it with
// spdlog::info(), warn() and so on. The first thing that Node::start() does is to call start_log().
#pragma once

#include <string>

namespace tocsin {

// Replaces spdlog's default logger. Times are in UTC, each line is written at once, and control characters of messages
// are escaped. `level`: the least severe level that is written: trace, debug, info, warn or error; any other text:
// nothing is written. `format`: "json"; any other text: human-readable. Thread: any, while no other thread logs.
void start_log(const std::string& level, const std::string& format);

}  // namespace tocsin
