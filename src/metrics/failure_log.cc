#include "metrics/failure_log.h"

namespace tocsin {
namespace {

constexpr Duration kRepeated = std::chrono::minutes(1);
constexpr Duration kOther = std::chrono::seconds(1);

}  // namespace

std::optional<std::string> FailureLog::line(std::string_view stage, const Error& error, MonoTime now) {
  std::string text = std::string(stage) + ": database " + to_string(error.code) + ": " + error.message;
  const auto [found, is_first] = stages_.try_emplace(std::string(stage), Stage{now, {}});
  Stage& of_stage = found->second;
  std::erase_if(of_stage.said, [&](const auto& each) { return now - each.second.at >= 2 * kRepeated; });
  const auto said = of_stage.said.find(text);
  const bool is_known = said != of_stage.said.end();
  if (is_known && now - said->second.at < kRepeated) {
    ++said->second.left_out;
    return {};
  }
  if (!is_first && now - of_stage.at < kOther) return {};
  of_stage.at = now;
  const int left_out = is_known ? said->second.left_out : 0;
  of_stage.said[text] = {now, 0};
  if (left_out > 0) text += " (" + std::to_string(left_out) + " more since the last line)";
  return text;
}

}  // namespace tocsin
