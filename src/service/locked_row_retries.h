// LockedRowRetries: retries requests whose rows or keys other transactions hold (ADR 0040). It tries them every 25 ms.
// After `patience` it makes a last attempt, and answers requests that are still locked as such. One thread tries all of
// them together. It waits for no locked row, and for held keys some tenths of a second per attempt, so requests delay
// one another little, however many rows are locked. Owned by Database (node/database.h): one for creates, one for
// changes and one for leases, to which the coalescers pass the requests that they find locked.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/worker_thread.h"
#include "postgres/pg_client_store.h"
#include "tocsin/clock.h"

namespace tocsin {

// `Item` has a member `until` of type MonoTime, which push() sets; the first attempt after that time answers the item.
// Thread: push any; the rest owner only (the Database's).
template <class Item>
class LockedRowRetries {
 public:
  // Answers the items whose rows are free, and returns the others. `is_last`: answers all items, those whose rows are
  // locked as locked. If the database fails, answers the items with the error. Called on the retry thread with at most
  // `batch` items; must not throw, and must not wait for locks longer in all than some tenths of a second. The items
  // that it returns come first the next time, in their order; with them come those that were pushed meanwhile.
  using Attempt = std::function<std::vector<Item>(PgClientStore&, std::vector<Item>, bool is_last)>;

  // Starts the thread. `shards`: of the whole installation. `capacity`: how many items may wait, not counting those
  // being tried. `patience`: how long an item is retried; 0: each is tried once, without a pause. `batch`: the most
  // items per attempt.
  LockedRowRetries(const SessionConfig& session, int shards, const Clock& clock, std::size_t capacity,
                   Duration patience, Attempt attempt, std::size_t batch = 500)
      : clock_(clock), capacity_(capacity), patience_(patience), attempt_(std::move(attempt)), batch_(batch) {
    worker_.start("locked rows", [=, this] { run(session, shards); });
  }
  ~LockedRowRetries() { stop(); }

  // Queues the items, and returns those that did not fit (after stop(): all). The caller must answer these.
  std::vector<Item> push(std::vector<Item> items) {
    std::vector<Item> refused;
    {
      MutexLock lock(mutex_);
      for (Item& item : items) {
        item.until = clock_.now() + patience_;
        (worker_.is_stopping() || waiting_.size() >= capacity_ ? refused : waiting_).push_back(std::move(item));
      }
    }
    worker_.wake();
    return refused;
  }

  // Tries all items once more, answers them, and ends the thread.
  void stop() { worker_.stop(); }

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(25);

  void run(const SessionConfig& config, int shards) {
    Session session(config);
    PgClientStore client_store(session, shards);
    for (bool is_stopping = false; !is_stopping;) {
      is_stopping = !worker_.wait() || (patience_ > Duration(0) && !worker_.pause(kPause));
      std::vector<Item> rest = try_all(client_store, take(), is_stopping);
      if (!rest.empty()) keep(std::move(rest));
    }
  }

  std::vector<Item> take() {
    MutexLock lock(mutex_);
    return std::exchange(waiting_, {});
  }
  void keep(std::vector<Item> rest) {
    {
      MutexLock lock(mutex_);
      waiting_.insert(waiting_.begin(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
    }
    worker_.wake();
  }

  std::vector<Item> try_all(PgClientStore& client_store, std::vector<Item> waiting, bool is_stopping) {
    std::vector<Item> rest;
    const MonoTime now = clock_.now();
    // The oldest come first, so that of two items about one row the older one is tried first.
    const auto others =
        std::stable_partition(waiting.begin(), waiting.end(), [&](const Item& item) { return item.until <= now; });
    const auto expired = static_cast<std::size_t>(others - waiting.begin());
    for (std::size_t i = 0; i < waiting.size();) {
      const bool is_last = i < expired;
      const std::size_t end = std::min(i + batch_, is_last ? expired : waiting.size());
      std::vector<Item> batch;
      for (; i < end; ++i) batch.push_back(std::move(waiting[i]));
      std::ranges::move(attempt_(client_store, std::move(batch), is_stopping || is_last), std::back_inserter(rest));
    }
    return rest;
  }

  const Clock& clock_;
  const std::size_t capacity_;
  const Duration patience_;
  const Attempt attempt_;
  const std::size_t batch_;
  Mutex mutex_;
  std::vector<Item> waiting_ TOCSIN_GUARDED_BY(mutex_);
  WorkerThread worker_;
};

}  // namespace tocsin
