#include "core/duration_text.h"

#include <cstdlib>

namespace tocsin {

std::string duration_text(Duration length) {
  const long long ms = std::llabs(length.count()) / 1000;
  const long long s = ms / 1000, min = s / 60, h = min / 60, d = h / 24;
  const auto text = [](long long n) { return std::to_string(n); };
  if (ms < 1000) return text(ms) + " ms";
  if (s < 60) return text(s) + "." + text(ms % 1000 / 100) + " s";
  if (min < 60) return text(min) + " min " + text(s % 60) + " s";
  if (h < 24) return text(h) + " h " + text(min % 60) + " min";
  return text(d) + " d " + text(h % 24) + " h";
}

}  // namespace tocsin
