#include "bench/workloads.h"

#include <iostream>

#include "base/progress.h"

namespace tocsin::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr int kTries = 4;

void require_all(std::size_t fired, std::size_t jobs) {
  if (fired != jobs) throw Failure(std::to_string(fired) + " of " + std::to_string(jobs) + " jobs fired");
}

}  // namespace

std::vector<std::string> retain(const std::string& days) {
  return {"--retain", "done=" + days + "d,cancelled=" + kAllDays + "d,dead=" + kAllDays + "d"};
}

std::vector<double> fire_over(Subject& subject, std::size_t n, Duration spread, std::uint64_t seed, Duration lead) {
  const WallTime asked = subject.db_now(), start = asked + lead;
  subject.create(jobs_due_over(start, spread, n, seed));
  if (subject.db_now() > start) throw Failure("the first jobs were due before all were created");
  subject.wait_until(start + spread, "firing");
  subject.wait_until_finished(static_cast<std::int64_t>(n), "the last of them");
  std::vector<double> lateness = subject.lateness_ms(asked);
  require_all(lateness.size(), n);
  return lateness;
}

double drain_rate(Subject& subject, std::size_t n) {
  seconds lead(4 + static_cast<int>(n / 10'000));
  for (int i = 0; i < kTries; ++i, lead *= 2) {
    const WallTime asked = subject.db_now(), due = asked + lead;
    subject.create(jobs_due_at(due, n));
    subject.settle();
    const bool is_in_time = subject.db_now() < due;
    subject.wait_until(due, "waiting for the deadline");
    subject.wait_until_finished(static_cast<std::int64_t>(n), "draining");
    if (!is_in_time) continue;  // some were due before all were there
    require_all(subject.lateness_ms(asked).size(), n);
    return static_cast<double>(n) / std::chrono::duration<double>(subject.last_finished_at(asked) - due).count();
  }
  throw Failure("the jobs cannot be created before they are due");
}

LoadReport load_for(double seconds, int port, int status, const std::string& what,
                    const std::function<std::string(std::int64_t)>& request_of,
                    std::function<void(std::int64_t, const std::string&)> on_answer) {
  Progress progress(what);
  const auto start = SteadyClock::now();
  Load load;
  load.port = port;
  load.expected_status = status;
  load.next = [&](std::int64_t n, std::string& request) {
    const double elapsed = std::chrono::duration<double>(SteadyClock::now() - start).count();
    progress.show(static_cast<std::int64_t>(elapsed * 1000), static_cast<std::int64_t>(seconds * 1000), "ms");
    if (elapsed >= seconds) return false;
    request = request_of(n);
    return true;
  };
  load.on_answer = std::move(on_answer);
  return run_strict_load(load);
}

LoadReport create_for(Subject& subject, double seconds, std::size_t most_ids, std::vector<std::string>* ids) {
  const WallTime due = subject.db_now() + kFar;
  std::vector<std::string> answers;  // read afterwards: the client shall not be what is measured
  std::function<void(std::int64_t, const std::string&)> keep;
  if (ids) {
    answers.reserve(most_ids);
    keep = [&](std::int64_t, const std::string& body) {
      if (answers.size() < most_ids) answers.push_back(body);
    };
  }
  LoadReport report = load_for(
      seconds, subject.port(), 201, "creating one by one",
      [&](std::int64_t n) {
        return request_text("POST", "/v1/jobs", job_body({n, due}));
      },
      std::move(keep));
  for (const std::string& answer : answers) ids->push_back(Json::parse(answer).at("job_id").get<std::string>());
  return report;
}

LoadReport cancel_all(Subject& subject, const std::vector<std::string>& ids) {
  Progress progress("cancelling");
  Load load;
  load.port = subject.port();
  load.next = [&](std::int64_t n, std::string& request) {
    const auto total = static_cast<std::int64_t>(ids.size());
    progress.show(n, total);
    if (n >= total) return false;
    request = request_text("POST", "/v1/jobs/" + ids[static_cast<std::size_t>(n)] + "/cancel");
    return true;
  };
  LoadReport report = run_load(load);
  if (report.unexpected > 0) std::cerr << "note: a cancel was answered " << report.first_unexpected << '\n';
  return report;
}

}  // namespace tocsin::bench
