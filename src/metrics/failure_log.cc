#include "metrics/failure_log.h"

namespace tocsin {
namespace {

constexpr Duration kRepeated = std::chrono::minutes(1);
constexpr Duration kOther = std::chrono::seconds(1);

}  // namespace

std::optional<std::string> FailureLog::line(std::string_view stage, const Error& error, MonoTime now) {
  std::string text = std::string(stage) + ": database " + to_string(error.code) + ": " + error.message;
  const auto found = last_.find(stage);
  if (found == last_.end()) {
    last_.emplace(stage, Last{text, now});
    return text;
  }
  Last& last = found->second;
  if (now - last.at < (text == last.text ? kRepeated : kOther)) {
    ++last.left_out;
    return {};
  }
  const int left_out = last.left_out;
  last = {text, now};
  if (left_out > 0) text += " (" + std::to_string(left_out) + " more since the last line)";
  return text;
}

}  // namespace tocsin
