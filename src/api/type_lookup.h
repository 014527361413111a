// TypeLookup: reads the registry (the stored types) for requests that name a type which this node's snapshot
// (Backend::types()) lacks, because another node has just created it. Owned by ApiContext (context.h). Most handlers
// use it through with_type(), with_any_type() and with_catalog(); batches of creates and entry messages call ask().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/backend.h"
#include "api/problem.h"
#include "base/mutex.h"

namespace tocsin {

class ApiContext;

// Invariants:
// - A question is answered by a read that began after the question was asked. So it finds every type whose creation any
//   node has acknowledged before.
// - At most one read is under way. The next one takes all questions that wait.
//
// A read costs one index look-up per name. The whole registry is read, and the snapshot replaced, only if the registry
// has one of the names, or a question has unknown ids. Thread: any.
class TypeLookup {
 public:
  struct Question {
    std::vector<std::string> names;        // names of types to find; a removed type counts as missing
    std::vector<std::string> any_names{};  // names of types to find, removed ones included
    bool has_unknown_ids = false;          // the caller has jobs with type ids that the snapshot lacks: reload it
  };
  // nullopt: the snapshot now has every type of the question that the registry has. Problem 503: the registry could not
  // be read. Problem 429: 10,000 questions wait, or the queue of the control database is full.
  using Done = std::function<void(const std::optional<Problem>& problem)>;

  explicit TypeLookup(const ApiContext& context) : context_(context) {}

  // Calls `done` once, on a thread that serves the control database. A problem may also be reported on the thread of
  // any caller of ask(), even before ask() returns. REQUIRES: `done` does not throw.
  void ask(Question question, Done done);

 private:
  struct Waiting {
    Question question;
    Done done;
  };

  // Posts a read to a thread of the control database if questions wait.
  void post_read();
  void read(Stores& control);
  Status look_up(Stores& control, const std::vector<Waiting>& waiting) const;
  std::vector<Waiting> take();

  const ApiContext& context_;
  Mutex mutex_;
  std::vector<Waiting> waiting_ TOCSIN_GUARDED_BY(mutex_);
  bool is_reading_ TOCSIN_GUARDED_BY(mutex_) = false;  // a read was posted and has not ended
};

}  // namespace tocsin
