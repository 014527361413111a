// Replays recorded deadlines against a node through REST, sped up, and compares what fires with the truth.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <set>

#include "base/progress.h"
#include "cli/cli.h"
#include "cli/config_file.h"
#include "cli/duration.h"
#include "cli/pause.h"
#include "replay/day_counts.h"
#include "replay/judge.h"
#include "replay/own_node.h"
#include "replay/replayer.h"

namespace tocsin::replay {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kWarmUps = 100;
constexpr milliseconds kGrace(1000);  // a second delivery would come by then
constexpr const char* kWarmUp = "warm-up ";

struct Options {
  std::string data = process_environment("TOCSIN_DATA").value_or("");
  std::string database = process_environment("TOCSIN_TEST_DATABASE").value_or("");
  std::string binary = "/proc/self/exe";  // this program serves too
  Connection connection;
  double speed = 10;
  std::size_t rows = std::numeric_limits<std::size_t>::max();
  std::string cut = "2016-01-13";
  int lanes = 16;
  bool cancels_by_id = false;
  int margin_ms = 500;
  int settle_s = 60;
  bool is_by_day = false;
  bool is_slice = false;
};

// Calls `is_done` until it is; false when that takes longer than `limit`.
bool wait_until(const std::function<bool()>& is_done, milliseconds limit) {
  const auto end = SteadyClock::now() + limit;
  while (!is_done()) {
    if (SteadyClock::now() > end) return false;
    pause_for(milliseconds(20));
  }
  return true;
}

void wait_until_ready(const Connection& connection) {
  const bool is_ready = wait_until(
      [&] {
        try {
          return RestClient(connection).call("GET", "/readyz").ok();
        } catch (const Failure&) {  // not listening yet
          return false;
        }
      },
      std::chrono::seconds(30));
  if (!is_ready) throw Failure(connection.url + " is not ready");
}

// Every connection and statement is used once before time counts.
void warm_up(RestClient& client, const std::string& biz_type, const Receiver& receiver) {
  Json jobs = Json::array();
  for (std::size_t i = 0; i < kWarmUps; ++i)
    jobs.push_back({{"biz_type", biz_type}, {"biz_id", kWarmUp + std::to_string(i)}, {"delay_ms", 100}});
  client.post_patiently("/v1/jobs/batch", {{"jobs", std::move(jobs)}});
  const auto all_came = [&] { return receiver.count() >= static_cast<std::int64_t>(kWarmUps); };
  if (!wait_until(all_came, std::chrono::seconds(30)))
    throw Failure("of " + std::to_string(kWarmUps) + " jobs to warm up " + std::to_string(receiver.count()) +
                  " fired within 30s");
}

// Until all that must still fire has, or nothing has for a while.
void settle(const std::vector<Job>& jobs, const Receiver& receiver, int settle_s) {
  std::int64_t expected = static_cast<std::int64_t>(kWarmUps);
  for (const Job& job : jobs) expected += job.answer != CancelAnswer::cancelled;
  Progress progress("settling");
  const auto all_came = [&] {
    progress.show(receiver.count(), expected);
    return receiver.count() >= expected;
  };
  wait_until(all_came, std::chrono::seconds(settle_s));
  pause_for(kGrace);
}

std::vector<Delivery> without_warm_up(std::vector<Delivery> deliveries) {
  std::erase_if(deliveries, [](const Delivery& delivery) { return delivery.biz_id.starts_with(kWarmUp); });
  return deliveries;
}

void print_spread(const char* name, const Spread& spread, const char* what) {
  std::cout << name << "p50 " << format_duration(spread.quantile(0.5)) << ", p99 "
            << format_duration(spread.quantile(0.99)) << ", max " << format_duration(spread.quantile(1)) << " ("
            << spread.ms.size() << ' ' << what << ")\n";
}

void print(const Judgement& judgement, const std::vector<Job>& jobs, std::size_t fired, const Options& options) {
  std::map<CancelAnswer, int> answers;
  for (const Job& job : jobs) ++answers[job.answer];
  std::cout << "jobs        " << jobs.size() << " at " << options.speed << " days/s, fired " << fired << '\n'
            << "cancels     " << answers[CancelAnswer::cancelled] << " cancelled, " << answers[CancelAnswer::running]
            << " running, " << answers[CancelAnswer::finished] << " finished\n";
  print_spread("created     ", judgement.create_lag, "answers after the request opened");
  print_spread("cancelled   ", judgement.cancel_lag, "answers after the request closed");
  print_spread("lateness    ", judgement.lateness, "deliveries of jobs created in time");
  for (const auto& [what, count] : judgement.counts) std::cout << "  " << what << "  " << count << '\n';
  if (std::max(judgement.create_lag.quantile(1), judgement.cancel_lag.quantile(1)) > options.margin_ms)
    std::cout << "note: answers came later than the margin of " << options.margin_ms
              << "ms; truths close to it may be missed\n";
  for (const auto& [what, ids] : judgement.violations) {
    std::cout << "VIOLATION   " << what << ": " << ids.size() << ", such as";
    for (std::size_t i = 0; i < std::min<std::size_t>(ids.size(), 3); ++i) std::cout << ' ' << ids[i];
    std::cout << '\n';
  }
  std::cout << "verdict     " << (judgement.is_clean() ? "all as it must be" : "VIOLATED") << std::endl;
}

int replay(const Options& options) {
  std::unique_ptr<OwnNode> node;
  Connection connection = options.connection;
  if (connection.url.empty()) {
    if (options.database.empty())
      throw BadUsage("give --url of a node, or --database of a PostgreSQL for a node of its own");
    node = std::make_unique<OwnNode>(options.binary, options.database);
    connection.url = node->url();
  }
  const double speed_s = options.speed * 86'400;
  std::vector<Request> requests = read_requests(options.data, speed_s * options.margin_ms / 1000);
  if (requests.size() > options.rows) requests.resize(options.rows);
  if (requests.empty()) throw BadUsage("no rows");

  wait_until_ready(connection);
  Receiver receiver;
  // A name of its own: jobs left by an earlier replay would fire into this one.
  const std::string biz_type = "replay." + std::to_string(std::random_device{}());
  RestClient client(connection);
  const auto put_type = [&](const std::string& name) {
    client.send("PUT", "/v1/types/" + name, {{"handler", {{"kind", "webhook"}, {"url", receiver.url()}}}});
  };
  put_type(biz_type);
  warm_up(client, biz_type, receiver);

  DataTime last = 0;
  for (const Request& request : requests) last = std::max(last, request.target);
  const DataTime cut = std::min(parse_data_time(options.cut), last + 1);
  const auto type_of = [&](const Request& request) {
    return options.is_by_day ? biz_type + "." + day_of(request) : biz_type;
  };
  if (options.is_by_day) {
    std::set<std::string> names;
    for (const Request& request : requests)
      if (request.opened < cut) names.insert(type_of(request));
    for (const std::string& name : names) put_type(name);
  }
  const auto start =
      std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now()) + std::chrono::seconds(3);
  const FastClock clock(requests.front().opened, options.speed, start);
  std::vector<Job> jobs = make_plan(std::move(requests), clock, cut);
  for (Job& job : jobs) job.biz_type = type_of(job.request);
  Replayer(jobs, connection, options.lanes, options.cancels_by_id ? Replayer::CancelBy::id : Replayer::CancelBy::key,
           receiver)
      .run(clock.at(cut));
  settle(jobs, receiver, options.settle_s);

  const auto deliveries = without_warm_up(receiver.deliveries());
  Judgement judgement = judge(jobs, deliveries, cut);
  if (options.is_by_day) {
    const CountsByDay recorded = counts_of_records(jobs, deliveries, cut);
    judgement.counts["days that the reports count as recorded"] = static_cast<std::int64_t>(recorded.size());
    for (const std::string& difference : differences(connection, biz_type + ".", recorded))
      judgement.violations["the reports differ from the records"].push_back(difference);
  }
  if (node && !node->stop()) judgement.violations["the node did not drain and end with 0"].push_back("-");
  print(judgement, jobs, deliveries.size(), options);
  return judgement.is_clean() ? 0 : 1;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--data", options.data, "Folder with the records and truth.py (TOCSIN_DATA)")->option_text("DIR");
  app.add_option("--url", options.connection.url, "Node to replay against; or else")->option_text("URL");
  app.add_option("--token", options.connection.token, "Its bearer token (an admin's)")->option_text("TOKEN");
  app.add_option("--database", options.database, "Server for a node of its own (TOCSIN_TEST_DATABASE)")
      ->option_text("URL");
  app.add_option("--binary", options.binary, "That node's program (this one)")->option_text("FILE");
  app.add_option("--speed", options.speed, "Days per second (10)")->check(CLI::Range(0.001, 1000.0))->option_text("N");
  app.add_option("--rows", options.rows, "Only the first so many rows")->check(CLI::PositiveNumber)->option_text("N");
  app.add_option("--cut", options.cut, "Recorded time at which it ends (2016-01-13)")->option_text("TIME");
  app.add_option("--lanes", options.lanes, "Connections (16)")->check(CLI::Range(2, 256))->option_text("N");
  app.add_flag("--by-id", options.cancels_by_id, "Cancel by job_id, many in one request; else each by its biz_id");
  app.add_option("--margin-ms", options.margin_ms, "Closer to the deadline nothing is judged (500)")->option_text("N");
  app.add_option("--settle", options.settle_s, "Seconds to wait for what must still fire (60)")->option_text("N");
  app.add_flag("--by-day", options.is_by_day, "A type per recorded day, and the reports of each beside the records");
  app.add_flag("--slice", options.is_slice, "Nine weeks at 3 days/s with a margin of 1500, by day");
}

int run(int argc, char** argv) {
  Options options;
  options.connection.url.clear();
  CLI::App app("Replays recorded deadlines against a node and compares what fires with the truth.", "tocsin_replay");
  add_options(app, options);
  try {
    app.parse(argc, argv);
    if (options.is_slice) {  // as sharp as the whole run by default, with three times the patience for a busy machine
      options.cut = "2015-03-05";
      options.speed = 3;
      options.margin_ms = 1500;
      options.is_by_day = true;
    }
    if (!has_data(options.data)) {
      std::cout << "no data\n";
      return 0;
    }
    return replay(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const BadUsage& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace
}  // namespace tocsin::replay

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "serve") return tocsin::run_cli(argc, argv);
  return tocsin::replay::run(argc, argv);
}
