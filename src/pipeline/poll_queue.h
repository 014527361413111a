// Consumers that wait for jobs of pull types, in the order they came. Jobs of such a type are claimed only for them.
//
// A claimer takes the consumers at the head together with the due jobs it claims for them, and either answers them or
// puts them back at the head: while a claim is on its way its consumer is nobody else's, so no job is claimed that
// nobody asked for, and a consumer costs an entry here, not a thread.
// The engines of a node share one queue: a consumer gets what is due in any database.
// Invariants: size() <= capacity. Every poll that was accepted is answered once, unless its consumer has gone.
// Thread: any.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/waker.h"
#include "tocsin/job.h"

namespace tocsin {

// One request of a consumer for jobs of one type.
struct Poll {
  TypeId type_id = 0;
  std::size_t max = 1;  // jobs in the answer, at most
  Duration ttr{0};      // length of their leases
  MonoTime arrived{};
  MonoTime deadline{};  // answered with no jobs then
  // Both may be called from any thread and must not block.
  std::function<bool()> is_gone;                             // nobody would read an answer any more
  std::function<void(std::vector<ClaimedJob> jobs)> answer;  // with none: nothing was due in time
};
using PollPtr = std::shared_ptr<const Poll>;

// So many of a batch's jobs are claimed for this consumer.
struct PollShare {
  PollPtr poll;
  std::size_t n = 0;
};

class PollQueue {
 public:
  explicit PollQueue(std::size_t capacity) : capacity_(capacity) {}

  // An engine takes part, and gets its number for answer_impatient(). Its `claimers` are woken when somebody asks,
  // `sweeper` (one engine's is enough) when a deadline moves ahead. REQUIRES: before the first add.
  std::size_t join(const std::vector<Waker*>& claimers, Waker* sweeper);

  // False: too many wait already. After close() it is answered at once, with nothing.
  bool add(PollPtr poll);

  // How many jobs of a type are asked for.
  std::size_t demand(TypeId type) const;
  // Of those that wait; 0: nobody does.
  Duration longest_ttr(TypeId type) const;
  // Somebody asked for jobs of the type then or later, or waits for them now.
  bool was_asked_since(TypeId type, MonoTime time) const;

  // Takes consumers from the head who together want up to `n` jobs; the last of them may want more than its share.
  // `one_ttr`: only such whose leases are as long as the first one's.
  std::vector<PollShare> take(TypeId type, std::size_t n, bool one_ttr);
  // Those for whom nothing was won: to the head, in their order.
  void put_back(const std::vector<PollPtr>& polls);

  // A claimer of this engine looked and found nothing to claim. Whoever did not want to wait has its answer once every
  // engine has looked since it asked.
  void answer_impatient(std::size_t engine, MonoTime now);
  // Answers those whose time is over and forgets those who are gone. Returns when to call again.
  MonoTime expire(MonoTime now);
  // Answers everybody with nothing, now and from now on.
  void close();

  std::size_t size() const;

 private:
  struct Line {
    std::deque<PollPtr> polls;
    std::size_t demand = 0;  // sum of max
  };

  // How long a poll that is not answered by a claimer stays at least: claimers may be busy with other types.
  static constexpr Duration kLeastStay = std::chrono::milliseconds(100);
  static constexpr Duration kGoneCheck = std::chrono::seconds(1);

  void wake_claimers();
  template <class Ends>
  std::vector<PollPtr> extract(Ends ends);

  const std::size_t capacity_;
  std::vector<Waker*> claimers_;
  Waker* sweeper_ = nullptr;
  mutable std::mutex mutex_;
  std::unordered_map<TypeId, Line> lines_;
  std::unordered_map<TypeId, MonoTime> asked_;  // when last
  std::size_t size_ = 0;
  MonoTime next_expiry_ = MonoTime::max();
  std::vector<MonoTime> looked_;  // by engine: when it last found nothing
  bool is_closed_ = false;
};

}  // namespace tocsin
