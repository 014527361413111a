// Handler kinds that publish to brokers: a publisher for each type, whatever the kind of its broker.
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

// Where the jobs of a type go, as its settings say.
struct Exit {
  std::string target;  // names the broker in errors, without secrets
  LinkMaker make_link;
  std::string host;  // as in the setting `url`; empty: there are several
};

// Thread: as HandlerKind.
class BrokerKind final : public HandlerKind {
 public:
  // Error invalid with the field at fault.
  using ExitReader = Result<Exit> (*)(const BizType& type, const GuardPtr& guard);
  // A job as JSON text; called on the thread that starts attempts.
  using JobWriter = std::function<std::string(const Job&)>;

  // `guard`: where it may connect to; not null.
  BrokerKind(std::string name, ExitReader read_exit, GuardPtr guard, const Clock& clock, JobWriter write_job);
  ~BrokerKind() override;  // stop()

  std::string name() const override { return name_; }
  std::optional<Error> check(const BizType& type) const override;
  std::shared_ptr<Handler> make(const BizType& type) override;
  void stop(Duration grace) override;
  std::vector<KindMetric> metrics() override;

 private:
  class TypeHandler;

  const std::string name_;
  const ExitReader read_exit_;
  const GuardPtr guard_;
  const Clock& clock_;
  const JobWriter write_job_;
  const std::shared_ptr<PublisherCounts> counts_ = std::make_shared<PublisherCounts>();
  Mutex mutex_;
  bool is_stopped_ TOCSIN_GUARDED_BY(mutex_) = false;
  // Those of former settings end by themselves.
  std::vector<std::shared_ptr<Publisher>> publishers_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin
