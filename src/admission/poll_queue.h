// PollQueue: the queue of waiting consumers of pull types (types whose jobs are fetched by request), in order of
// arrival. A poll is one waiting request of a consumer for jobs of one type. Jobs of pull types are claimed only for
// polls in this queue. The engines of a node (one per database) share one queue, made in node/node.cc: a consumer gets
// what is due in any database.
//
// A claimer takes polls from the head, claims due jobs for them, and either answers them or puts them back at the head;
// those whose leases ended during the claim rest, and go to the tail. Meanwhile no other claimer has these polls, so no
// job is claimed without a consumer. A poll costs an entry here, not a thread. add() refuses at capacity; put_back()
// may exceed the capacity by the polls that claimers had taken.
//
// Invariant: every poll that was accepted is answered once, unless its connection is closed before.
// Thread: any.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "admission/flow_control.h"
#include "base/mutex.h"
#include "base/waker.h"
#include "tocsin/job.h"

namespace tocsin {

// One request of a consumer for jobs of one type.
struct Poll {
  TypeId type_id = 0;
  std::size_t max = 1;  // the most jobs in the answer, 1 or more
  Duration ttr{0};      // length of their leases
  MonoTime arrived{};
  // Until when the poll waits. After that it is answered with no jobs: as soon as every engine has found nothing due
  // since the poll arrived, but 100 ms after its arrival, or at the deadline if that is later, at the latest. A poll
  // whose deadline is not after `arrived` does not wait for jobs to become due.
  MonoTime deadline{};
  // Both may be called from any thread and must not block. PollQueue calls is_gone under its lock, and `answer`
  // outside.
  std::function<bool()> is_gone;                             // the connection is closed: an answer is useless
  std::function<void(std::vector<ClaimedJob> jobs)> answer;  // called once; no jobs: none was due in time
};
using PollPtr = std::shared_ptr<const Poll>;

// A poll, and how many jobs of a batch are claimed for it.
struct PollShare {
  PollPtr poll;
  std::size_t n = 0;
};

class PollQueue {
 public:
  // `capacity`: the most polls that wait at once.
  explicit PollQueue(std::size_t capacity) : capacity_(capacity) {}

  // Registers an engine; returns its number for note_nothing_due(). From now on each new poll wakes the engine's
  // `claimers`. `sweeper`: the loop that calls expire(). add() wakes it if the new poll expires first, put_back()
  // always. Only the last engine's sweeper is used. REQUIRES: before the first add().
  std::size_t join(const std::vector<Waker*>& claimers, Waker* sweeper);

  // False: the queue is full. True: the poll will be answered; after close() at once, with no jobs.
  bool add(PollPtr poll);

  // How many jobs of a type the waiting consumers ask for.
  std::size_t demand(TypeId type) const;
  // Of the jobs of a type that are due in all databases, those for which consumers wait here, late ones first. Every
  // node sees all due jobs of a pull type; permits are for the node that has the consumers.
  Waiting asked_for(TypeId type, const Waiting& due) const;
  // The longest lease that a waiting consumer asks for; 0: none waits.
  Duration longest_ttr(TypeId type) const;
  // Whether a consumer asked for jobs of the type at `time` or later, or waits now.
  bool was_asked_since(TypeId type, MonoTime time) const;

  // Takes polls from the head, for up to `n` jobs in all; the `n` of the last poll may be less than its `max`.
  // `one_ttr`: stops before a poll with another lease length than the first one. Forgets polls whose connection is
  // closed.
  std::vector<PollShare> take(TypeId type, std::size_t n, bool one_ttr);
  // Puts polls that got no job back at the head, in their order. After close(): answers them with no jobs.
  void put_back(const std::vector<PollPtr>& polls);
  // Puts polls that must not be served before `until` back at the tail, at that time or at their deadline: expire()
  // does it. After close(): answers them with no jobs.
  void put_back_later(const std::vector<PollPtr>& polls, MonoTime until);

  // The primary claimer (the one that serves all types) of the engine with this number found nothing to claim at `now`.
  // Answers, with no jobs, the polls past their deadline that arrived before every engine last found nothing.
  void note_nothing_due(std::size_t engine, MonoTime now);
  // Answers polls past their deadline with no jobs, forgets polls whose connection is closed, and puts polls back whose
  // rest is over. Returns when to call again; max(): no poll waits.
  MonoTime expire(MonoTime now);
  // Answers all waiting polls with no jobs, and every later one at once.
  void close();

  std::size_t size() const;

 private:
  struct Line {
    std::deque<PollPtr> polls;
    std::size_t demand = 0;  // sum of max
  };
  struct Resting {
    PollPtr poll;
    MonoTime until{};
  };

  // expire() answers no poll earlier than this after its arrival, because claimers may be busy with other types.
  static constexpr Duration kLeastStay = std::chrono::milliseconds(100);
  static constexpr Duration kGoneCheck = std::chrono::seconds(1);  // how often expire() looks for closed connections

  void wake_claimers();
  // Puts resting polls back whose rest is over. Lowers `next` to the end of the next rest. True: some were put back.
  bool end_rests(MonoTime now, MonoTime& next) TOCSIN_REQUIRES(mutex_);
  // Removes the polls for which `ends` is true, and returns them.
  template <class Ends>
  std::vector<PollPtr> extract(Ends ends) TOCSIN_REQUIRES(mutex_);

  const std::size_t capacity_;
  std::vector<Waker*> claimers_;
  Waker* sweeper_ = nullptr;
  mutable Mutex mutex_;
  std::unordered_map<TypeId, Line> lines_ TOCSIN_GUARDED_BY(mutex_);
  std::unordered_map<TypeId, MonoTime> asked_ TOCSIN_GUARDED_BY(mutex_);  // arrival of the last poll
  std::vector<Resting> resting_ TOCSIN_GUARDED_BY(mutex_);                // of put_back_later()
  std::size_t size_ TOCSIN_GUARDED_BY(mutex_) = 0;                        // the resting ones included
  MonoTime next_expiry_ TOCSIN_GUARDED_BY(mutex_) = MonoTime::max();
  std::vector<MonoTime> looked_ TOCSIN_GUARDED_BY(mutex_);  // by engine: when it last found nothing
  bool is_closed_ TOCSIN_GUARDED_BY(mutex_) = false;
};

}  // namespace tocsin
