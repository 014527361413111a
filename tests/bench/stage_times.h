// How long a node's stages take for their steps, as its /metrics tell.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tocsin::bench {

// A histogram that only grows, or the difference of two readings of it. Seconds.
struct StepHistogram {
  std::vector<double> bounds;  // of the buckets, the last infinite
  std::vector<double> counts;  // of steps no longer than the bound
  double steps = 0;
  double seconds = 0;  // of all together

  StepHistogram since(const StepHistogram& earlier) const;
  // By linear interpolation within a bucket, as Prometheus does it; 0 when there are no steps.
  double quantile(double q) const;
};

// What GET /metrics answers. Throws Failure.
std::string metrics_of(int port);
// The sum of the values of one of them. Throws Failure when there is none.
double counter_of(int port, const std::string& name);

using StageTimes = std::map<std::string, StepHistogram>;  // by the name of the stage

// All that the node has done so far. Throws Failure.
StageTimes stage_times_of(int port);

}  // namespace tocsin::bench
