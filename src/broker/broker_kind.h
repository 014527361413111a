// BrokerKind: the HandlerKind of one sort of broker (amqp, kafka or redis). Its handler of a type publishes each
// attempt as a message, on a connection and a thread of that type (Publisher). A node has one BrokerKind for each
// broker library of the build, made by add_broker_kinds() (entry/broker_kinds.h) and owned by HandlerRegistry.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "broker/peer.h"
#include "broker/publisher.h"
#include "delivery/handler_kind.h"

namespace tocsin {

// The exit topic of a type: where its jobs are published, read from its handler settings.
struct Exit {
  std::string target;   // names the broker in errors, without secrets
  LinkMaker make_link;  // makes a connection that is not open yet; called for each try to connect
  // Host of the setting `url`, for check() to ask the guard; empty: there are several hosts.
  std::string host;
};

// Thread: the destructor, stop() and metrics() owner only; the rest any.
class BrokerKind final : public HandlerKind {
 public:
  // Reads a type's settings without connecting. Error invalid: its field names the setting at fault, such as
  // `handler.url`.
  using ExitReader = Result<Exit> (*)(const BizType& type, const GuardPtr& guard);
  // Returns a job as JSON text, for the body of its message. Called by the runners (the stages that start handlers),
  // one per database, so calls may overlap. An exception makes the attempt a retry.
  using JobWriter = std::function<std::string(const Job&)>;

  // `name`: as in `handler.kind`. `guard`: the addresses that types may use; not null. REQUIRES: `clock` outlives the
  // kind.
  BrokerKind(std::string name, ExitReader read_exit, GuardPtr guard, const Clock& clock, JobWriter write_job);
  ~BrokerKind() override;  // stop(0)

  std::string name() const override { return name_; }
  std::optional<Error> check(const BizType& type) const override;
  // Null: the settings are invalid. After stop() the handler ends every attempt as a retry "shutting down".
  std::shared_ptr<Handler> make(const BizType& type) override;
  void stop(Duration grace) override;
  std::vector<KindMetric> metrics() override;
  std::vector<EndpointInfo> endpoints() const override;

 private:
  class TypeHandler;

  const std::string name_;
  const ExitReader read_exit_;
  const GuardPtr guard_;
  const Clock& clock_;
  const JobWriter write_job_;
  const std::shared_ptr<PublisherCounts> counts_ = std::make_shared<PublisherCounts>();
  mutable Mutex mutex_;
  bool is_stopped_ TOCSIN_GUARDED_BY(mutex_) = false;
  // One per handler. A handler that is destroyed retires its publisher: it sends its messages and ends. make() removes
  // those that have ended.
  std::vector<std::shared_ptr<Publisher>> publishers_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin
