// Trace: the events of a simulation, one line each. The hash of all lines tells whether two runs were equal; the lines
// are printed only on request.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "tocsin/clock.h"

namespace tocsin {

// Thread: owner only.
class Trace {
 public:
  explicit Trace(bool is_printed) : is_printed_(is_printed) {}

  void line(MonoTime now, const std::string& text) {
    for (const char c : std::to_string(now.time_since_epoch().count()) + text)
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    if (is_printed_)
      std::printf("%12.6f  %s\n", static_cast<double>(now.time_since_epoch().count()) / 1e6, text.c_str());
  }
  std::uint64_t hash() const { return hash_; }

 private:
  const bool is_printed_;
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace tocsin
