// Fresh reads of the type registry, for requests that name a type which this node's snapshot lacks.
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

// Invariants: a request is answered by a read that began after the request arrived, so a type that any node has
// acknowledged before is found; at most one read is under way, whatever the number of requests. A read costs one index
// look-up per name; the whole registry is read, and the snapshot replaced, only when it has one of the names or a
// request has unknown ids.
// Thread: any.
class TypeLookup {
 public:
  struct Question {
    std::vector<std::string> names;          // registered types
    std::vector<std::string> removed_too{};  // registered or removed ones
    bool has_unknown_ids = false;            // rows hold ids that the snapshot lacks
  };
  // nullopt: the snapshot (Backend::types) now has every type of the question that the registry had. A problem: the
  // registry could not be read, or too many requests wait (429).
  using Done = std::function<void(const std::optional<Problem>& problem)>;

  explicit TypeLookup(const ApiContext& context) : context_(context) {}

  // Calls `done` once, on a thread of the control database or of a caller.
  void ask(Question question, Done done);

 private:
  struct Waiting {
    Question question;
    Done done;
  };

  // Posts a read while requests wait.
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
