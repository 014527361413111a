// ApiContext: what every REST handler uses: the backend, limits, look-ups of types, common answers. The Api has one;
// the entry consumers share another.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "api/backend.h"
#include "api/router.h"
#include "api/type_lookup.h"

namespace tocsin {

// A job that is due within this time is hinted (Backend::hint): the lookahead of scans (5 s), and a second for the way
// to the node that owns the shard. Equal to EngineConfig::hint_window() for the default lookahead.
inline constexpr Duration kHintWindow = std::chrono::seconds(6);

// A function that takes a call either runs its callback (`work`, `use`), which must answer the call, or refuses the
// call itself. An exception in a callback is answered 500. REQUIRES: called inside guarded(), as handlers are.
// Thread: any.
class ApiContext {
 public:
  // REQUIRES: the backend outlives it, and it outlives all calls.
  ApiContext(Backend& b, std::size_t max_attribute) : backend(b), max_attribute_bytes(max_attribute) {}

  // Runs `work` on a thread of this database (Backend::post); or refuses the call: 429 when its queue is full, 503 when
  // the database cannot be used.
  void on_database(const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const;
  // The same for reads that may be slow (Backend::post_read).
  void read_database(const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const;
  // The same for work that waits for other transactions (Backend::post_waiting).
  void wait_on_control(const CallPtr& call, std::function<void(Stores&)> work) const;
  void on_control(const CallPtr& call, std::function<void(Stores&)> work) const {  // database 0
    on_database(call, 0, std::move(work));
  }
  // Backend::after_outboxes(); refuses the call with 503 while an entry waits.
  void after_outboxes(const CallPtr& call, std::vector<EntryQuery> queries,
                      std::function<void(const Backend::Unasked&)> proceed) const;
  static Problem busy();  // 429: a queue is full
  static void too_busy(const CallPtr& call) { call->refuse(busy()); }

  // Calls `use` with the type of this name: at once when this node knows it, else after a read of the registry that
  // begins after this call (TypeLookup), on a thread of the control database. A name that this read does not find is
  // refused with `refusal`; a failed read is refused with 503 or 429. The BizType is valid only inside `use`.
  using Refusal = std::function<Problem(const std::string& name)>;
  void with_type(const CallPtr& call, const std::string& name, Refusal refusal,
                 std::function<void(const BizType&)> use);
  // The same; an unknown name is refused with 422 and `field`.
  void with_type(const CallPtr& call, const std::string& name, const std::string& field,
                 std::function<void(const BizType&)> use);
  // The same, but finds removed types, too: for lists of jobs, reports and bulk operations.
  void with_any_type(const CallPtr& call, const std::string& name, const std::string& field,
                     std::function<void(const BizType&)> use);
  // Calls `use` with a snapshot that has the types of all `jobs`, whose names the answer shows. Reads the registry
  // first if this node lacks a type; if that fails, the snapshot lacks it.
  void with_catalog(const CallPtr& call, std::span<const Job> jobs, std::function<void(const TypeCatalog&)> use);
  static Problem unknown_type(const std::string& name, const std::string& field);  // 422

  // What the caller is told of an error of that database: 400 for invalid, 429 for kFull, else 503.
  Problem problem_of(const Error& error, DatabaseId database_id) const;
  void hint_if_soon(JobId job, TypeId type, WallTime fire_at) const;  // within kHintWindow

  // The job id in the path, its first argument. 0: no job can have this id, and the call was refused (400 or 404).
  JobId job_id_of(const CallPtr& call) const;
  DatabaseId database_of(JobId id) const { return backend.database_of(shard_of(id)); }
  DatabaseId database_of(const std::string& biz_id) const {
    return backend.database_of(shard_of(biz_id, backend.shards()));
  }
  // False: no job can have this id.
  bool may_exist(JobId id) const { return id > 0 && shard_of(id) < backend.shards(); }
  static Problem no_such_job();  // 404
  // Answer to a request for a job that the database `asked` does not have: 404; or 503, because the shard has left that
  // database since, and the job may live elsewhere.
  Problem missing_job(JobId id, DatabaseId asked) const;

  Backend& backend;
  const std::size_t max_attribute_bytes;
  TypeLookup lookup{*this};

 private:
  using Post = bool (Backend::*)(DatabaseId, std::function<void(Stores&)>);
  void run(Post post, const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const;
};

}  // namespace tocsin
