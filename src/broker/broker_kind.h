// BrokerKind: the handler kinds of brokers (amqp, kafka, redis): one publisher per type. A node has one BrokerKind per
// broker library of the build.
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

// The destination of a type's jobs, read from its handler settings.
struct Exit {
  std::string target;   // names the broker in errors, without secrets
  LinkMaker make_link;  // makes a connection to it (broker/link.h)
  std::string host;     // of the setting `url`; empty: there are several
};

// Thread: start, stop, destructor, metrics and on_capacity_change owner only; the rest any.
class BrokerKind final : public HandlerKind {
 public:
  // Reads a type's settings. Error invalid with the field at fault.
  using ExitReader = Result<Exit> (*)(const BizType& type, const GuardPtr& guard);
  // A job as JSON text; called on the thread that starts attempts.
  using JobWriter = std::function<std::string(const Job&)>;

  // `name`: as in `handler.kind`. `guard`: the addresses that it may connect to; not null.
  BrokerKind(std::string name, ExitReader read_exit, GuardPtr guard, const Clock& clock, JobWriter write_job);
  ~BrokerKind() override;  // stop()

  std::string name() const override { return name_; }
  std::optional<Error> check(const BizType& type) const override;
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
  // Publishers of former settings retire by themselves.
  std::vector<std::shared_ptr<Publisher>> publishers_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin
