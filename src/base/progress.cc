#include "base/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"

namespace tocsin {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLine = std::chrono::seconds(5);
constexpr std::size_t kBar = 24;

}  // namespace

Progress::Progress(std::string what) : what_(std::move(what)), is_terminal_(::isatty(STDERR_FILENO) != 0) {
  if (!is_terminal_) next_ = std::chrono::steady_clock::now() + kLine;  // a quick run prints nothing
}

Progress::~Progress() {
  if (is_terminal_ && has_drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(std::int64_t done, std::int64_t total, const std::string& note) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + (is_terminal_ ? std::chrono::duration_cast<std::chrono::nanoseconds>(kRedraw) : kLine);
  const double part = total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
  std::string line = what_ + " ";
  if (is_terminal_) {
    const auto filled = static_cast<std::size_t>(part * static_cast<double>(kBar));
    for (std::size_t i = 0; i < kBar; ++i) line += i < filled ? "█" : "░";
    line += " ";
  }
  line += std::to_string(static_cast<int>(part * 100)) + "%  " + std::to_string(done) + "/" + std::to_string(total);
  if (!note.empty()) line += "  " + note;
  line = clip(line, 79);  // a wrapped line could not be redrawn
  std::fprintf(stderr, is_terminal_ ? "\r%s\x1b[K" : "%s\n", line.c_str());
  std::fflush(stderr);
  has_drawn_ = true;
}

}  // namespace tocsin
