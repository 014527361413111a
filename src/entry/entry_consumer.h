// Turns the messages of one entry topic into jobs.
//
// A message is settled with its broker after the commit that created its job. So none is lost, and a redelivered
// message finds its job. While the database does not answer nothing is received; the broker's prefetch bounds what has
// arrived. The connection to a broker that is down is retried, 0.1 s to 5 s apart.
#pragma once

#include <atomic>
#include <string>

#include "api/entry.h"
#include "base/latest.h"
#include "base/mutex.h"
#include "base/worker_thread.h"
#include "broker/entry_source.h"

namespace tocsin {

struct EntryCounts {
  std::atomic<std::int64_t> created = 0, existing = 0, refused = 0, connected = 0;
};

// How an entry topic is doing, for /readyz. Thread: any.
struct EntryState {
  explicit EntryState(std::string name) : target(std::move(name)) {}
  const std::string target;
  Latest<std::string> trouble{std::make_shared<const std::string>("not consuming yet")};  // empty: none
};

// Thread: owner only.
class EntryConsumer {
 public:
  // REQUIRES: `context`, its backend and `counts` outlive it.
  EntryConsumer(Entry entry, ApiContext& context, EntryCounts& counts);
  ~EntryConsumer();  // stop()

  std::shared_ptr<const EntryState> state() const { return state_; }
  void start();
  // Returns when nothing is in progress; the broker delivers again what was not settled.
  void stop();

 private:
  void run();
  Status consume(EntrySource& source);
  // What became of the messages; asks until the database has answered. nullopt: stopping.
  std::optional<std::vector<EntryAnswer>> take(const std::vector<EntryMessage>& messages);
  void count(const std::vector<EntryMessage>& messages, const std::vector<EntryAnswer>& answers);
  bool pause(int failures);  // false: stopping

  void say(std::string trouble) { state_->trouble.set(std::make_shared<const std::string>(std::move(trouble))); }

  const Entry entry_;
  const std::shared_ptr<EntryState> state_;
  ApiContext& context_;
  EntryCounts& counts_;
  Mutex mutex_;
  EntrySource* source_ TOCSIN_GUARDED_BY(mutex_) = nullptr;  // while there is one
  WorkerThread worker_;
};

}  // namespace tocsin
