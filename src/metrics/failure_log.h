// FailureLog: which failures get a line in the log, so that an outage does not fill the disk. Owned by Metrics.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

// A failure that a stage repeats has one line a minute, with the number of those left out; one that differs from the
// stage's last line has a line of its own, but at most one a second. Thread: one at a time.
class FailureLog {
 public:
  // nullopt: this failure gets no line.
  std::optional<std::string> line(std::string_view stage, const Error& error, MonoTime now);

 private:
  struct Last {
    std::string text;
    MonoTime at;
    int left_out = 0;
  };
  std::map<std::string, Last, std::less<>> last_;  // by stage
};

}  // namespace tocsin
