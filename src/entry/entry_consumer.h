// EntryConsumer: turns the messages of one entry topic (a broker's topic whose messages become jobs) into jobs, on a
// thread of its own. The node has one per entry topic of its configuration.
//
// A message is acknowledged to its broker after the commit that created its job, and rejected (to the dead letters) if
// it can never become one. So no message is lost, and a redelivered one finds its job. While the database does not
// answer nothing is received; the broker's prefetch limit bounds what has arrived. The connection to a broker that is
// down is retried, 0.1 s to 5 s apart, as is the transaction of messages that have been received.
#pragma once

#include <atomic>
#include <string>

#include "api/entry.h"
#include "base/latest.h"
#include "base/mutex.h"
#include "base/worker_thread.h"
#include "broker/entry_source.h"

namespace tocsin {

// Of all entry topics of the node, for the metrics.
struct EntryCounts {
  std::atomic<std::int64_t> created = 0, existing = 0, refused = 0;  // messages, by EntryAnswer::Kind
  std::atomic<std::int64_t> connected = 0;                           // topics that are being consumed now
};

// How an entry topic is doing, for /readyz. Thread: any.
struct EntryState {
  explicit EntryState(std::string name) : target(std::move(name)) {}
  const std::string target;  // broker and topic, without secrets
  // Why no messages become jobs at the moment; empty: they do.
  Latest<std::string> trouble{std::make_shared<const std::string>("not consuming yet")};
};

// Thread: owner only (the node's), except state() (any).
class EntryConsumer {
 public:
  // `context`: the backend to create jobs with, and its limits. REQUIRES: it, its backend and `counts` outlive this.
  EntryConsumer(Entry entry, ApiContext& context, EntryCounts& counts);
  ~EntryConsumer();  // stop()

  std::shared_ptr<const EntryState> state() const { return state_; }
  void start();
  // Ends the thread; may wait for a broker or a database call. The broker redelivers what was not acknowledged.
  void stop();

 private:
  void run();
  Status consume(EntrySource& source);  // until the connection breaks (Error) or stop()
  // Creates the jobs of the messages and returns their results; repeats until the database answers. nullopt: stopping.
  std::optional<std::vector<EntryAnswer>> take(const std::vector<EntryMessage>& messages);
  void count(const std::vector<EntryMessage>& messages, const std::vector<EntryAnswer>& answers);
  bool pause(int failures);  // waits, longer after more failures in a row; false: stopping

  void set_trouble(std::string why) { state_->trouble.set(std::make_shared<const std::string>(std::move(why))); }

  const Entry entry_;
  const std::shared_ptr<EntryState> state_;
  ApiContext& context_;
  EntryCounts& counts_;
  Mutex mutex_;
  EntrySource* source_ TOCSIN_GUARDED_BY(mutex_) = nullptr;  // the connection, while there is one: stop() interrupts it
  WorkerThread worker_;
};

}  // namespace tocsin
