// EntryConsumer: creates jobs from the messages of one entry topic (a broker's topic whose messages become jobs), on a
// thread of its own. Owned by the node (node/node_impl.h), one per entry topic of its configuration.
//
// - A message is acknowledged to its broker after the commit that created its job, so no message is lost. A redelivered
//   message finds its job and creates no other.
// - A message that can never become a job is rejected, which sends it to the broker's dead letters.
// - While the database does not answer, nothing is received; the broker's prefetch limit bounds what has arrived.
//   Messages that have arrived are tried again, 0.1 s to 5 s apart.
// - A broken connection to the broker is opened again, 0.1 s to 5 s apart.
#pragma once

#include <atomic>
#include <string>

#include "api/entry_messages.h"
#include "base/latest.h"
#include "base/mutex.h"
#include "base/worker_thread.h"
#include "broker/entry_source.h"

namespace tocsin {

// Counts over all entry topics of the node, for the metrics. Thread: any.
struct EntryCounts {
  std::atomic<std::int64_t> created = 0, existing = 0, refused = 0;  // messages, by EntryAnswer::Kind
  std::atomic<std::int64_t> connected = 0;                           // topics that are being consumed now
};

// The state of an entry topic, for /readyz. Thread: any.
struct EntryState {
  explicit EntryState(std::string name) : target(std::move(name)) {}
  const std::string target;  // broker and topic, without secrets
  // Why no messages become jobs at the moment; empty: they do.
  Latest<std::string> trouble{std::make_shared<const std::string>("not consuming yet")};
};

// Thread: owner only (the thread that starts and stops the node), except state() (any).
class EntryConsumer {
 public:
  // `context`: has the backend that creates the jobs, and the limits of jobs. REQUIRES: `context`, its backend and
  // `counts` outlive this object.
  EntryConsumer(Entry entry, ApiContext& context, EntryCounts& counts);
  ~EntryConsumer();  // stop()

  std::shared_ptr<const EntryState> state() const { return state_; }
  void start();
  // Ends the thread; may wait for a broker or a database call. The broker redelivers the messages that were not
  // acknowledged.
  void stop();

 private:
  void run();
  Status consume(EntrySource& source);  // until the connection breaks (Error) or stop()
  // Creates the jobs of the messages, repeatedly until the databases answer, and returns their results. nullopt:
  // stopping.
  std::optional<std::vector<EntryAnswer>> take(std::vector<EntryMessage>& messages);
  void count(const std::vector<EntryMessage>& messages, const std::vector<EntryAnswer>& answers);
  bool pause(int failures);  // waits, longer after more failures in a row; false: stopping

  void set_trouble(std::string why) { state_->trouble.set(std::make_shared<const std::string>(std::move(why))); }

  const Entry entry_;
  const std::shared_ptr<EntryState> state_;
  ApiContext& context_;
  EntryCounts& counts_;
  Mutex mutex_;
  EntrySource* source_ TOCSIN_GUARDED_BY(mutex_) = nullptr;  // while it is open; stop() interrupts it
  WorkerThread worker_;
};

}  // namespace tocsin
