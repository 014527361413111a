// FailureLog: decides which failed database calls get a line in the log, so that an outage does not fill the disk.
// Owned by Metrics.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

// A stage (the part that made the call, such as "scanner") gets at most one line a second. A failure that it repeats
// with the same text gets one line a minute, with the number of times that were left out. Thread: any, one at a time
// (Metrics calls it under its lock).
class FailureLog {
 public:
  // Returns the line to log; nullopt: none for this failure.
  std::optional<std::string> line(std::string_view stage, const Error& error, MonoTime now);

 private:
  struct Said {
    MonoTime at;
    int left_out = 0;
  };
  struct Stage {
    MonoTime at;                                    // of its last line
    std::map<std::string, Said, std::less<>> said;  // by text; forgotten after two minutes
  };
  std::map<std::string, Stage, std::less<>> stages_;
};

}  // namespace tocsin
