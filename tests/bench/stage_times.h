// How long the steps of a node's stages take, read from its /metrics.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tocsin::bench {

// A histogram of step times in seconds, or the difference of two readings.
struct StepHistogram {
  std::vector<double> bounds;  // of the buckets, the last infinite
  std::vector<double> counts;  // steps that took no longer than the bound
  double steps = 0;
  double seconds = 0;  // the sum of all steps

  StepHistogram since(const StepHistogram& earlier) const;
  // Interpolates linearly in a bucket, as Prometheus does; 0 if there are no steps.
  double quantile(double q) const;
};

// The answer to GET /metrics. Throws Failure.
std::string metrics_of(int port);
// The sum of all values of this metric. Throws Failure if the node has no such metric.
double counter_of(int port, const std::string& name);

using StageTimes = std::map<std::string, StepHistogram>;  // by the name of the stage

// All steps since the node's start. Throws Failure.
StageTimes stage_times_of(int port);

}  // namespace tocsin::bench
