// Delivers jobs as messages to brokers: a publisher for each type, whatever the kind of its broker.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "broker/link.h"
#include "tocsin/biz_type.h"
#include "tocsin/handler.h"

namespace tocsin {

class Publisher;

// Where the jobs of a type go, as its settings say.
struct Exit {
  std::string target;  // names the broker in errors, without secrets
  LinkMaker make_link;
};

// Thread: handler_for any; the rest owner only.
class BrokerClient {
 public:
  // A job as JSON text; called on the thread that starts attempts.
  using JobWriter = std::function<std::string(const Job&)>;

  BrokerClient(const Clock& clock, JobWriter write_job);
  ~BrokerClient();  // stop()

  // Every attempt on its way ends with a retry "shutting down", as does every later one.
  void stop();

  // Publishes the jobs of one type. REQUIRES: the client outlives it.
  std::shared_ptr<Handler> handler_for(const BizType& type, Exit exit);

 private:
  class TypeHandler;

  const Clock& clock_;
  const JobWriter write_job_;
  std::mutex mutex_;
  bool is_stopped_ = false;                             // guarded by mutex_
  std::vector<std::shared_ptr<Publisher>> publishers_;  // guarded by mutex_; those of former settings end by themselves
};

}  // namespace tocsin
