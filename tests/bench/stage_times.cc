#include "bench/stage_times.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <regex>
#include <sstream>

#include "bench/http_load.h"
#include "cli/rest_client.h"

namespace tocsin::bench {

StepHistogram StepHistogram::since(const StepHistogram& earlier) const {
  StepHistogram difference = *this;
  for (std::size_t i = 0; i < std::min(counts.size(), earlier.counts.size()); ++i)
    difference.counts[i] -= earlier.counts[i];
  difference.steps -= earlier.steps;
  difference.seconds -= earlier.seconds;
  return difference;
}

double StepHistogram::quantile(double q) const {
  const double rank = q * steps;
  double below = 0, least = 0;
  for (std::size_t i = 0; steps > 0 && i < bounds.size(); ++i) {
    if (counts[i] >= rank && counts[i] > below)
      return std::isinf(bounds[i]) ? least : least + (bounds[i] - least) * (rank - below) / (counts[i] - below);
    below = counts[i];
    least = bounds[i];
  }
  return 0;
}

std::string metrics_of(int port) {
  std::string text;
  Load load;
  load.port = port;
  load.connections = 1;
  load.next = [](std::int64_t n, std::string& request) {
    request = request_text("GET", "/metrics");
    return n == 0;
  };
  load.on_answer = [&](std::int64_t, const std::string& body) { text = body; };
  run_strict_load(load);
  return text;
}

double counter_of(int port, const std::string& name) {
  const std::regex line_of_it(name + R"((?:\{[^}]*\})? (\S+))");
  std::optional<double> sum;
  std::istringstream lines(metrics_of(port));
  for (std::string line; std::getline(lines, line);)
    if (std::smatch match; std::regex_match(line, match, line_of_it)) sum = sum.value_or(0) + std::stod(match[1]);
  if (!sum) throw Failure("/metrics has no " + name);
  return *sum;
}

StageTimes stage_times_of(int port) {
  static const std::regex line_of_steps(R"re(tocsin_step_seconds_(\w+)\{stage="(\w+)"(?:,le="([^"]+)")?\} (\S+))re");
  StageTimes times;
  std::istringstream lines(metrics_of(port));
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, line_of_steps)) continue;
    StepHistogram& histogram = times[match[2]];
    const double value = std::strtod(match[4].str().c_str(), nullptr);
    if (match[1] == "bucket") {
      histogram.bounds.push_back(std::strtod(match[3].str().c_str(), nullptr));  // reads "+Inf" too
      histogram.counts.push_back(value);
    } else {
      (match[1] == "sum" ? histogram.seconds : histogram.steps) = value;
    }
  }
  if (times.empty()) throw Failure("/metrics tell nothing of the stages");
  return times;
}

}  // namespace tocsin::bench
