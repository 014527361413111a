// Shows the progress of a long run on standard error: a bar that redraws itself on a terminal, a line every few seconds
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tocsin {

// Thread: owner only.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap when nothing is to be drawn yet. `note` is shown behind the numbers.
  void show(std::int64_t done, std::int64_t total, const std::string& note = "");

 private:
  const std::string what_;
  const bool is_terminal_;
  bool has_drawn_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace tocsin
