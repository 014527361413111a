// FailureLog: which failures get a line in the log, so that an outage does not fill the disk. Owned by Metrics.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

// A failure that a stage repeats has one line a minute, with the number of those left out. Another failure of the stage
// has a line of its own, but a stage has at most one line a second. Thread: one at a time.
class FailureLog {
 public:
  // nullopt: this failure gets no line.
  std::optional<std::string> line(std::string_view stage, const Error& error, MonoTime now);

 private:
  struct Said {
    MonoTime at;
    int left_out = 0;
  };
  struct Stage {
    MonoTime at;                                    // of its last line
    std::map<std::string, Said, std::less<>> said;  // by text; forgotten after a while
  };
  std::map<std::string, Stage, std::less<>> stages_;
};

}  // namespace tocsin
