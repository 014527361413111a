#include "replay/plan.h"

#include <utility>

namespace tocsin::replay {

std::vector<Job> make_plan(std::vector<Request> requests, const FastClock& clock, DataTime cut) {
  std::vector<Job> jobs;
  for (Request& request : requests) {
    if (request.opened >= cut) continue;
    Job job;
    job.opens = clock.at(request.opened);
    job.due = clock.at(request.target);
    if (request.closed && *request.closed < cut) job.closes = clock.at(*request.closed);
    job.request = std::move(request);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace tocsin::replay
