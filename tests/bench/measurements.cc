#include "bench/measurements.h"

namespace tocsin::bench {

Sizes quick_sizes() {
  Sizes sizes;
  for (std::size_t* n :
       {&sizes.lateness_jobs, &sizes.drain_jobs, &sizes.batch_jobs, &sizes.cancel_jobs, &sizes.backlog_jobs,
        &sizes.burst_jobs, &sizes.life_jobs, &sizes.floor_rows, &sizes.floor_commits})
    *n /= 10;
  sizes.webhook_jobs /= 2;
  sizes.lateness_s /= 6;
  sizes.webhook_s /= 2;
  sizes.request_s /= 10;
  return sizes;
}

const std::vector<Measurement>& measurements() {
  static const std::vector<Measurement> all = {
      {"floors", measure_floors}, {"lateness", measure_lateness}, {"drain", measure_drain},
      {"single", measure_single}, {"cancel", measure_cancel},     {"batch", measure_batch},
      {"memory", measure_memory}, {"webhook", measure_webhook},   {"life", measure_life},
  };
  return all;
}

}  // namespace tocsin::bench
