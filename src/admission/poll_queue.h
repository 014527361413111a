// PollQueue: the queue of waiting consumers (polls) of pull types, in order of arrival. Jobs of such a type are claimed
// only for consumers in this queue.
//
// A claimer takes consumers from the head, claims due jobs for them, and either answers them or puts them back at the
// head. While it claims, no other claimer has these consumers, so no job is claimed without a consumer. A consumer
// costs an entry here, not a thread. The engines of a node share one queue: a consumer gets what is due in any
// database. add() refuses at capacity; put_back() may exceed it by the polls that claimers had taken. Invariant: every
// poll that was accepted is answered once, unless its consumer has gone. Thread: any.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/waker.h"
#include "tocsin/job.h"

namespace tocsin {

// One request of a consumer for jobs of one type.
struct Poll {
  TypeId type_id = 0;
  std::size_t max = 1;  // jobs in the answer, at most
  Duration ttr{0};      // length of their leases
  MonoTime arrived{};
  // When it is answered with no jobs, or 100 ms after its arrival if that is later. A poll whose deadline has passed
  // when it arrives is non-blocking: answered before that, as soon as every engine has found nothing due since it
  // arrived.
  MonoTime deadline{};
  // Both may be called from any thread and must not block. is_gone is called under the queue's lock, `answer` is not.
  std::function<bool()> is_gone;                             // the connection is closed: an answer is useless
  std::function<void(std::vector<ClaimedJob> jobs)> answer;  // called once; no jobs: none was due in time
};
using PollPtr = std::shared_ptr<const Poll>;

// A consumer, and how many jobs of a batch are claimed for it.
struct PollShare {
  PollPtr poll;
  std::size_t n = 0;
};

class PollQueue {
 public:
  // `capacity`: polls that wait at once.
  explicit PollQueue(std::size_t capacity) : capacity_(capacity) {}

  // Registers an engine and returns its number for answer_non_blocking(). From now on its `claimers` are woken for each
  // poll. `sweeper` replaces that of the engine before: one is enough to call expire(); it is woken for an earlier
  // deadline. REQUIRES: before the first add.
  std::size_t join(const std::vector<Waker*>& claimers, Waker* sweeper);

  // False: the queue is full. True: the poll will be answered; after close() at once, with no jobs.
  bool add(PollPtr poll);

  // How many jobs of a type the waiting consumers ask for.
  std::size_t demand(TypeId type) const;
  // The longest lease that a waiting consumer asks for; 0: none waits.
  Duration longest_ttr(TypeId type) const;
  // Whether a consumer asked for jobs of the type at `time` or later, or waits now.
  bool was_asked_since(TypeId type, MonoTime time) const;

  // Takes consumers from the head for up to `n` jobs; the last may want more than its share. `one_ttr`: stops at a
  // consumer with another lease length than the first. Forgets consumers whose connection is closed.
  std::vector<PollShare> take(TypeId type, std::size_t n, bool one_ttr);
  // Returns consumers that got no job to the head, in their order; after close() answers them, with nothing.
  void put_back(const std::vector<PollPtr>& polls);

  // The primary claimer of this engine found nothing to claim. A non-blocking poll is answered, with nothing, once
  // every engine has found nothing since it arrived.
  void answer_non_blocking(std::size_t engine, MonoTime now);
  // Answers polls past their deadline, forgets those of closed connections. Returns when to call again; max(): no poll
  // waits.
  MonoTime expire(MonoTime now);
  // Answers all waiting polls, and every later one, with nothing.
  void close();

  std::size_t size() const;

 private:
  struct Line {
    std::deque<PollPtr> polls;
    std::size_t demand = 0;  // sum of max
  };

  // expire() answers no poll earlier than this after its arrival, because claimers may be busy with other types.
  static constexpr Duration kLeastStay = std::chrono::milliseconds(100);
  static constexpr Duration kGoneCheck = std::chrono::seconds(1);  // how often expire() looks for closed connections

  void wake_claimers();
  // Removes the polls for which `ends` is true, and returns them.
  template <class Ends>
  std::vector<PollPtr> extract(Ends ends) TOCSIN_REQUIRES(mutex_);

  const std::size_t capacity_;
  std::vector<Waker*> claimers_;
  Waker* sweeper_ = nullptr;
  mutable Mutex mutex_;
  std::unordered_map<TypeId, Line> lines_ TOCSIN_GUARDED_BY(mutex_);
  std::unordered_map<TypeId, MonoTime> asked_ TOCSIN_GUARDED_BY(mutex_);  // arrival of the last poll
  std::size_t size_ TOCSIN_GUARDED_BY(mutex_) = 0;
  MonoTime next_expiry_ TOCSIN_GUARDED_BY(mutex_) = MonoTime::max();
  std::vector<MonoTime> looked_ TOCSIN_GUARDED_BY(mutex_);  // by engine: when it last found nothing
  bool is_closed_ TOCSIN_GUARDED_BY(mutex_) = false;
};

}  // namespace tocsin
