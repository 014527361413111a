// What an endpoint that answers nothing costs the webhooks of another, when nine jobs in ten are its own.
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "bench/deliveries.h"
#include "bench/measurements.h"
#include "bench/subject.h"

namespace tocsin::bench {
namespace {

using boost::asio::ip::tcp;
using std::chrono::seconds;

constexpr const char* kDead = "dead";
constexpr std::size_t kDeadPerLiving = 9;

// A port of this machine with a listener that never answers, or without a listener.
class DeadEndpoint {
 public:
  enum class Kind { refuses, black_hole };
  explicit DeadEndpoint(Kind kind) : acceptor_(io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {
    port_ = acceptor_.local_endpoint().port();
    if (kind == Kind::refuses) acceptor_.close();
  }
  std::string handler() const {
    return Json{{"kind", "webhook"}, {"url", "http://127.0.0.1:" + std::to_string(port_)}, {"timeout_ms", 2000}}.dump();
  }

 private:
  boost::asio::io_context io_;
  tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
};

struct EndpointOutcome {
  std::vector<double> lateness_ms;  // of the living, sorted
  double per_second = 0;
};

// `n` jobs over `spread` for the living endpoint, and the dead one's among them.
EndpointOutcome deliver(Bench& bench, std::size_t n, seconds spread, const DeadEndpoint* dead) {
  Deliveries receiver;
  Subject subject(bench.server, {bench.binary, Json{{"kind", "webhook"}, {"url", receiver.url()}}.dump()});
  const auto seed = 7000 + static_cast<std::uint64_t>(bench.round);
  const WallTime start = subject.db_now() + seconds(dead ? 12 : 6);
  if (dead) {
    subject.put_type(kDead, dead->handler());
    subject.create(jobs_due_over(start, std::max<Duration>(spread, seconds(1)), kDeadPerLiving * n, seed + 1, kDead));
  }
  subject.create(jobs_due_over(start, spread, n, seed));
  subject.wait_until(start + spread, "delivering");
  for (WallTime until = start + spread; receiver.count() < static_cast<std::int64_t>(n);) {
    until += std::chrono::milliseconds(200);
    if (until > start + spread + seconds(120)) throw Failure("the living endpoint's jobs do not all arrive");
    subject.wait_until(until, "the last deliveries");
  }
  EndpointOutcome outcome;
  outcome.lateness_ms = subject.lateness_ms();
  subject.stop();
  const auto& deliveries = receiver.stop();
  const auto arrived = [](const auto& delivery) { return delivery.at; };
  const auto [first, last] = std::ranges::minmax(deliveries, {}, arrived);
  const double took = std::chrono::duration<double>(last.at - first.at).count();
  outcome.per_second = static_cast<double>(deliveries.size()) / took;
  return outcome;
}

void compare(Bench& bench, const std::string& name, const DeadEndpoint* dead) {
  const EndpointOutcome quiet = deliver(bench, bench.sizes.endpoint_jobs, seconds(bench.sizes.endpoint_s), dead);
  bench.results.add("endpoints." + name + "_p50", quantile(quiet.lateness_ms, 0.5));
  bench.results.add("endpoints." + name + "_p99", quantile(quiet.lateness_ms, 0.99));
  bench.results.add("endpoints." + name + "_burst",
                    deliver(bench, bench.sizes.endpoint_burst_jobs, seconds(0), dead).per_second);
}

}  // namespace

void measure_endpoints(Bench& bench) {
  compare(bench, "alone", nullptr);
  const DeadEndpoint refusing(DeadEndpoint::Kind::refuses);
  compare(bench, "refusing", &refusing);
  const DeadEndpoint silent(DeadEndpoint::Kind::black_hole);
  compare(bench, "silent", &silent);
}

}  // namespace tocsin::bench
