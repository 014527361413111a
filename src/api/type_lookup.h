// TypeLookup: reads the type registry for requests that name a type which this node's snapshot (Backend::types) lacks.
// ApiContext has one; handlers use it through its with_type(), with_any_type() and with_catalog().
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

// Invariants: a question is answered by a read that began after it was asked, so a type that any node has acknowledged
// before is found; at most one read is under way, and it takes all questions that wait. A read costs one index look-up
// per name; the whole registry is read, and the snapshot replaced, only when the registry has one of the names, or a
// question has unknown ids.
// Thread: any.
class TypeLookup {
 public:
  struct Question {
    std::vector<std::string> names;        // of types to find; removed ones do not count
    std::vector<std::string> any_names{};  // of types to find; removed ones count
    bool has_unknown_ids = false;          // jobs to be shown have type ids that the snapshot lacks
  };
  // nullopt: the snapshot now has every type of the question that the registry had. A problem: the registry could not
  // be read (503), or 10,000 questions wait or the queue of the control database is full (429).
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

  // Posts a read if questions wait.
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
