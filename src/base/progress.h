// Shows the progress of a long run on standard error: a bar, redrawn each 0.1 s, on a terminal; a line each 5 s
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tocsin {

// Thread: owner only.
class Progress {
 public:
  explicit Progress(std::string what);  // `what`: stands before the numbers, as "creating"
  ~Progress();                          // removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call as often as there is news: most calls draw nothing. `total` 0 shows 0%. `note` is shown behind the numbers.
  void show(std::int64_t done, std::int64_t total, const std::string& note = "");

 private:
  const std::string what_;
  const bool is_terminal_;
  bool has_drawn_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace tocsin
