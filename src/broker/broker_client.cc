#include "broker/broker_client.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "broker/publisher.h"
#include "delivery/event_body.h"

namespace tocsin {

class BrokerClient::TypeHandler final : public Handler {
 public:
  TypeHandler(const JobWriter& write_job, const BizType& type, std::shared_ptr<Publisher> publisher)
      : write_job_(write_job),
        type_(type.name),
        type_json_(nlohmann::json(type.name).dump()),
        publisher_(std::move(publisher)) {}
  ~TypeHandler() override { publisher_->retire(); }

  // The one place where what the libraries throw is caught.
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

  std::size_t room() const override { return Publisher::kMostInFlight; }

 private:
  const JobWriter& write_job_;
  const std::string type_, type_json_;
  const std::shared_ptr<Publisher> publisher_;
};

BrokerClient::BrokerClient(const Clock& clock, JobWriter write_job) : clock_(clock), write_job_(std::move(write_job)) {}
BrokerClient::~BrokerClient() { stop(); }

void BrokerClient::stop() {
  std::vector<std::shared_ptr<Publisher>> all;
  {
    std::lock_guard lock(mutex_);
    is_stopped_ = true;
    all.swap(publishers_);
  }
  for (const auto& publisher : all) publisher->stop();
}

std::shared_ptr<Handler> BrokerClient::handler_for(const BizType& type, Exit exit) {
  auto publisher = std::make_shared<Publisher>(std::move(exit.target), std::move(exit.make_link), clock_);
  std::lock_guard lock(mutex_);
  std::erase_if(publishers_, [](const auto& each) { return each->has_ended(); });
  if (is_stopped_) {
    publisher->stop();
  } else {
    publishers_.push_back(publisher);
  }
  return std::make_shared<TypeHandler>(write_job_, type, std::move(publisher));
}

}  // namespace tocsin
