#include "broker/broker_kind.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "broker/settings.h"
#include "delivery/event_body.h"

namespace tocsin {

// Slots: the messages that a publisher may hold unconfirmed.
class PublisherPool final : public StartPool {
 public:
  std::size_t capacity() const override { return Publisher::kMostInFlight; }
};

class BrokerKind::TypeHandler final : public Handler {
 public:
  TypeHandler(const JobWriter& write_job, const BizType& type, std::shared_ptr<Publisher> publisher)
      : write_job_(write_job),
        type_(type.name),
        type_json_(nlohmann::json(type.name).dump()),
        publisher_(std::move(publisher)) {}
  ~TypeHandler() override { publisher_->retire(); }

  // The only place that catches what the libraries throw.
  void start(const ClaimedJob& claimed, Finish finish) override {
    BrokerMessage message;
    try {
      const Job& job = claimed.job;
      message.id = std::to_string(job.job_id);
      message.key = job.biz_id;
      message.type = type_;
      message.attempt = std::to_string(job.attempts);
      message.timestamp_ms = std::chrono::floor<std::chrono::milliseconds>(job.action_time).time_since_epoch().count();
      message.traceparent = job.traceparent;
      message.body = event_body(type_json_, job, write_job_(job));
    } catch (const std::exception& error) {
      return finish(Outcome::retry(std::string("cannot write the message: ") + error.what()));
    }
    publisher_->publish(std::move(message), claimed.lease_deadline, claimed.start_by, std::move(finish));
  }

  std::shared_ptr<const StartPool> pool() const override { return pool_; }

 private:
  const JobWriter& write_job_;
  const std::string type_, type_json_;
  const std::shared_ptr<Publisher> publisher_;
  const std::shared_ptr<const StartPool> pool_ = std::make_shared<PublisherPool>();
};

BrokerKind::BrokerKind(std::string name, ExitReader read_exit, GuardPtr guard, const Clock& clock, JobWriter write_job)
    : name_(std::move(name)),
      read_exit_(read_exit),
      guard_(std::move(guard)),
      clock_(clock),
      write_job_(std::move(write_job)) {}
BrokerKind::~BrokerKind() { stop(Duration(0)); }

std::optional<Error> BrokerKind::check(const BizType& type) const {
  const auto exit = read_exit_(type, guard_);
  if (!exit) return exit.error();
  // A literal address is refused now; a name, and an address that is already in the registry, when connecting.
  if (!exit->host.empty() && guard_->refuses_literal(exit->host))
    return Error{ErrorCode::invalid, kForbiddenPeer, kHandlerPath + "url"};
  return {};
}

std::shared_ptr<Handler> BrokerKind::make(const BizType& type) {
  auto exit = read_exit_(type, guard_);
  if (!exit) return nullptr;
  auto publisher = std::make_shared<Publisher>(exit->target, exit->make_link, clock_, counts_);
  MutexLock lock(mutex_);
  std::erase_if(publishers_, [](const auto& each) { return each->has_ended(); });
  if (is_stopped_) {
    publisher->stop(Duration(0));
  } else {
    publishers_.push_back(publisher);
  }
  return std::make_shared<TypeHandler>(write_job_, type, std::move(publisher));
}

void BrokerKind::stop(Duration grace) {
  std::vector<std::shared_ptr<Publisher>> all;
  {
    MutexLock lock(mutex_);
    is_stopped_ = true;
    all.swap(publishers_);
  }
  const MonoTime until = clock_.now() + grace;
  for (const auto& publisher : all) publisher->stop(until - clock_.now());
}

std::vector<EndpointInfo> BrokerKind::endpoints() const {
  std::vector<EndpointInfo> all;
  MutexLock lock(mutex_);
  for (const auto& publisher : publishers_) {
    if (publisher->has_ended()) continue;
    all.push_back(publisher->info());
    all.back().kind = name_;
  }
  return all;
}

std::vector<KindMetric> BrokerKind::metrics() {
  const auto read = [counts = counts_](std::atomic<std::int64_t> PublisherCounts::*count) {
    return [counts, count] { return static_cast<double>(((*counts).*count).load()); };
  };
  const std::string prefix = "tocsin_" + name_;
  return {
      {prefix + "_confirmed_total", "Messages that the broker has confirmed", true, read(&PublisherCounts::confirmed)},
      {prefix + "_refused_total", "Messages refused by the broker, or not confirmed", true,
       read(&PublisherCounts::refused)},
      {prefix + "_connections", "Connections to brokers that are open", false, read(&PublisherCounts::connections)},
  };
}

}  // namespace tocsin
