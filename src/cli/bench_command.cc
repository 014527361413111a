// tocsin bench: how fast a cluster takes jobs in, and how late it fires them.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <iostream>
#include <limits>
#include <random>
#include <thread>

#include "base/mutex.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/duration.h"
#include "cli/pause.h"
#include "cli/print.h"

namespace tocsin {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kNoopType = "tocsin.bench";
constexpr milliseconds kLead(1000);  // from the start to the first deadline: creating jobs must not make them late
constexpr milliseconds kPoll(200);
constexpr std::size_t kSample = 10'000;

struct BenchOptions : ClientOptions {
  std::int64_t jobs = 10'000;
  std::string over = "10s";
  std::int64_t batch = 500;
  int lanes = 4;
  std::string type = kNoopType;
};

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// Creates the jobs of one run over several connections.
// Thread: work() runs on the thread of each connection, the rest on the owner.
class Creator {
 public:
  Creator(const BenchOptions& options, std::string run)
      : options_(options),
        run_(std::move(run)),
        spread_ms_(static_cast<double>(parse_duration(options.over)->count())) {}

  // Returns when all jobs are created; throws the first failure of a connection's thread.
  void run() {
    {
      std::vector<std::jthread> lanes;
      lanes.reserve(static_cast<std::size_t>(options_.lanes));
      for (int i = 0; i < options_.lanes; ++i) lanes.emplace_back([this] { work(); });
      Progress progress("creating");
      while (running_lanes_ > 0) {
        progress.show(created_, options_.jobs);
        pause_for(milliseconds(20));
      }
    }
    MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  // Jobs of this run have ids from here on.
  std::int64_t first_id() const {
    MutexLock lock(mutex_);
    return first_id_;
  }

 private:
  void work() {
    try {
      RestClient client(options_.connection);
      for (;;) {
        const std::int64_t first = next_.fetch_add(options_.batch);
        if (first >= options_.jobs) break;
        const Json reply =
            client.post_patiently("/v1/jobs/batch", batch(first, std::min(first + options_.batch, options_.jobs)));
        remember(reply.at("items"));
      }
    } catch (...) {
      MutexLock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_ = options_.jobs;  // the other lanes stop too
    }
    --running_lanes_;
  }

  Json batch(std::int64_t first, std::int64_t last) const {
    const double elapsed_ms = 1000 * seconds_since(start_);
    Json jobs = Json::array();
    for (std::int64_t i = first; i < last; ++i) {
      // The golden ratio scatters neighbours evenly: every batch holds jobs from the whole spread.
      const double place = std::fmod(static_cast<double>(i) * 0.6180339887498949, 1.0);
      const double delay_ms = static_cast<double>(kLead.count()) + place * spread_ms_ - elapsed_ms;
      jobs.push_back({{"biz_type", options_.type},
                      {"biz_id", run_ + "-" + std::to_string(i)},
                      {"delay_ms", static_cast<std::int64_t>(std::max(0.0, delay_ms))}});
    }
    return {{"jobs", std::move(jobs)}};
  }

  void remember(const Json& items) {
    MutexLock lock(mutex_);
    for (const Json& item : items)
      first_id_ = std::min(first_id_, std::int64_t{std::stoll(item.at("job_id").get<std::string>())});
    created_ += static_cast<std::int64_t>(items.size());
  }

  const BenchOptions& options_;
  const std::string run_;
  const double spread_ms_;
  const SteadyClock::time_point start_ = SteadyClock::now();
  std::atomic<std::int64_t> next_{0}, created_{0};
  std::atomic<int> running_lanes_{options_.lanes};
  mutable Mutex mutex_;
  std::exception_ptr failure_ TOCSIN_GUARDED_BY(mutex_);
  std::int64_t first_id_ TOCSIN_GUARDED_BY(mutex_) = std::numeric_limits<std::int64_t>::max();
};

bool has_jobs(RestClient& client, const std::string& type, const char* status) {
  const Json page = client.get(with_query("/v1/jobs", {{"biz_type", type}, {"status", status}, {"limit", "1"}}));
  return !page.at("items").empty();
}

void wait_until_fired(RestClient& client, const BenchOptions& options, SteadyClock::time_point start) {
  const auto all_due = kLead + *parse_duration(options.over);
  Progress progress("firing");
  while (has_jobs(client, options.type, "pending") || has_jobs(client, options.type, "running")) {
    progress.show(std::min<std::int64_t>(static_cast<std::int64_t>(1000 * seconds_since(start)), all_due.count()),
                  all_due.count(), "ms");
    pause_for(kPoll);
  }
}

// Lateness of the run's newest jobs, sorted. Their due times are scattered, so they stand for all.
std::vector<double> sample_lateness(RestClient& client, const BenchOptions& options, std::int64_t first_id) {
  std::vector<double> lateness;
  std::string cursor;
  do {
    const Json page =
        client.get(with_query("/v1/jobs", {{"biz_type", options.type}, {"limit", "1000"}, {"cursor", cursor}}));
    for (const Json& job : page.at("items")) {
      if (std::stoll(job.at("job_id").get<std::string>()) < first_id) continue;
      if (const auto late = job.find("lateness_ms"); late != job.end() && late->is_number())
        lateness.push_back(late->get<double>());
    }
    cursor = page.at("next_cursor").is_string() ? page.at("next_cursor").get<std::string>() : "";
  } while (!cursor.empty() && lateness.size() < std::min(kSample, static_cast<std::size_t>(options.jobs)));
  std::sort(lateness.begin(), lateness.end());
  return lateness;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

void report(const BenchOptions& options, double create_s, double total_s, const std::vector<double>& lateness) {
  const double rate = static_cast<double>(options.jobs) / std::max(create_s, 1e-9);
  const auto late = [&](double q) { return quantile(lateness, q); };
  if (options.json) {
    print_json(
        std::cout,
        {{"jobs", options.jobs},
         {"create_s", create_s},
         {"creates_per_s", rate},
         {"total_s", total_s},
         {"lateness_ms",
          {{"n", lateness.size()}, {"p50", late(0.5)}, {"p90", late(0.9)}, {"p99", late(0.99)}, {"max", late(1)}}}});
    return;
  }
  std::cout << "created   " << options.jobs << " jobs in " << format_duration(1000 * create_s) << ", "
            << std::llround(rate) << "/s\n"
            << "fired     all after " << format_duration(1000 * total_s) << '\n'
            << "lateness  p50 " << format_duration(late(0.5)) << ", p90 " << format_duration(late(0.9)) << ", p99 "
            << format_duration(late(0.99)) << ", max " << format_duration(late(1)) << " (of " << lateness.size()
            << " jobs)\n";
}

int bench(BenchOptions& options) {
  RestClient client(options.connection);
  const std::string type_path = "/v1/types/" + path_part(options.type);
  const RestReply type = client.call("GET", type_path);
  if (type.status == 404 && options.type == kNoopType)
    client.send("PUT", type_path, {{"handler", {{"kind", "noop"}}}});
  else if (!type.ok())
    throw_problem(type);

  Creator creator(options, "bench-" + std::to_string(std::random_device{}()));
  const auto start = SteadyClock::now();
  creator.run();
  const double create_s = seconds_since(start);
  wait_until_fired(client, options, start);
  const double total_s = seconds_since(start);
  report(options, create_s, total_s, sample_lateness(client, options, creator.first_id()));
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& root, Chosen& chosen) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = add_command(root, "bench", "Create jobs, wait, print rate and lateness",
                                  "Creates jobs of the type tocsin.bench, whose handler does nothing.\n"
                                  "Example:\n"
                                  "  tocsin bench --jobs 100000 --over 30s --lanes 8");
  add_number(*command, "--jobs", options->jobs, "How many (10000)", 1, 100'000'000);
  add_duration(*command, "--over", options->over, "Their deadlines spread over it (10s)");
  add_number(*command, "--batch", options->batch, "Jobs per request (500)", 1, 10'000);
  add_number(*command, "--lanes", options->lanes, "Connections (4)", 1, 256);
  command->add_option("--type", options->type, "An existing type instead of a noop one")->option_text("NAME");
  add_client_options(*command, *options);
  on_run(command, chosen, options, bench);
}

}  // namespace tocsin
