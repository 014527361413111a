// ApiContext: what every REST handler uses: the backend, limits, look-ups of types, common answers. Api (api.h) owns
// one for its handlers; the node owns another for its entry consumers (src/entry).
#pragma once

#include <functional>
#include <span>
#include <string>

#include "api/backend.h"
#include "api/router.h"
#include "api/type_lookup.h"

namespace tocsin {

// A job that is due within this time is hinted (Backend::hint()): the lookahead of scans (5 s), and a second to reach
// the node that owns the shard. Equal to EngineConfig::hint_window() for the default lookahead.
inline constexpr Duration kHintWindow = std::chrono::seconds(6);

// A function that takes a call either runs its callback (`work`, `proceed`, `use`), which must answer the call, or
// refuses the call itself. An exception in a callback is answered 500. REQUIRES: called inside guarded() (router.h), as
// handlers are. Thread: any.
class ApiContext {
 public:
  // `max_attribute`: bytes of a job's attribute. REQUIRES: the backend outlives this object, and this object outlives
  // all calls.
  ApiContext(Backend& b, std::size_t max_attribute) : backend(b), max_attribute_bytes(max_attribute) {}

  // Runs `work` on a thread of this database, for writes and short reads (Backend::post()). Refusals: 429 if its queue
  // is full, 503 if the database cannot be used. If the caller has gone when its turn comes (Responder::is_gone()),
  // `work` is dropped. REQUIRES: the call has changed nothing yet that `work` must complete or undo.
  void on_database(const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const;
  // As on_database(), for reads that may be slow (Backend::post_read()).
  void read_database(const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const;
  // As on_database(), in the control database, for work that waits for locks of other transactions
  // (Backend::post_waiting()). It runs even if the caller has gone: it may be a later step of a write.
  void wait_on_control(const CallPtr& call, std::function<void(Stores&)> work) const;
  void on_control(const CallPtr& call, std::function<void(Stores&)> work) const {  // database 0
    on_database(call, 0, std::move(work));
  }
  // Backend::after_outboxes(). Refusals: 503 if an entry still waits after 2 s or a lookup failed, 429 if too many
  // requests wait.
  void after_outboxes(const CallPtr& call, std::vector<EntryQuery> queries,
                      std::function<void(const Backend::Unasked&)> proceed) const;
  // Backend::when_findable(). Refusals: also 503 if a shard has moved and this node does not learn where.
  void when_findable(const CallPtr& call, std::vector<EntryQuery> queries,
                     std::function<void(const Backend::Unasked&)> proceed) const;
  static Problem busy();  // 429: a queue is full
  static void too_busy(const CallPtr& call) { call->refuse(busy()); }

  // Calls `use` with the type of this name; the BizType is valid only inside `use`. If this node knows the type, `use`
  // is called at once. Otherwise the registry (the stored types) is read first (TypeLookup), and `use` is called on a
  // thread of the control database. Refusals: `refusal` if the registry does not have the name; 503 or 429 if the read
  // failed.
  using Refusal = std::function<Problem(const std::string& name)>;
  void with_type(const CallPtr& call, const std::string& name, Refusal refusal,
                 std::function<void(const BizType&)> use);
  // As above; if the registry does not have the name, refuses with 422 and `field`, the name of the input field.
  void with_type(const CallPtr& call, const std::string& name, const std::string& field,
                 std::function<void(const BizType&)> use);
  // As above, but finds removed types, too; for lists of jobs, reports and bulk operations.
  void with_any_type(const CallPtr& call, const std::string& name, const std::string& field,
                     std::function<void(const BizType&)> use);
  // Calls `use` with a snapshot of all types, for an answer that shows the names of the types of `jobs`. If this node
  // lacks one of these types, the registry is read first; if that fails, the call is refused (503).
  void with_catalog(const CallPtr& call, std::span<const Job> jobs, std::function<void(const TypeCatalog&)> use);
  static Problem unknown_type(const std::string& name, const std::string& field);  // 422

  // What the caller is told about an error of that database: 400 for Error invalid, 429 for field kFull, otherwise 503.
  Problem problem_of(const Error& error, DatabaseId database_id) const;
  void hint_if_soon(JobId job, TypeId type, WallTime fire_at) const;  // Backend::hint() if due within kHintWindow

  // The job id in the path (the call's first argument). 0: no job can have this id, and the call was refused (400 or
  // 404).
  JobId job_id_of(const CallPtr& call) const;
  DatabaseId database_of(JobId id) const { return backend.database_of(shard_of(id)); }
  DatabaseId database_of(const std::string& biz_id) const {
    return backend.database_of(shard_of(biz_id, backend.shards()));
  }
  // False: no job can have this id.
  bool may_exist(JobId id) const { return id > 0 && shard_of(id) < backend.shards(); }
  static Problem no_such_job();  // 404
  // The answer if the database `asked` does not have the job: 404. If the job's shard has moved to another database
  // since the request was sent: 503, because the job may be there.
  Problem missing_job(JobId id, DatabaseId asked) const;
  Problem moved(DatabaseId now) const;  // 503: the shard has moved there since the request was sent

  Backend& backend;
  const std::size_t max_attribute_bytes;
  TypeLookup lookup{*this};

 private:
  using Post = bool (Backend::*)(DatabaseId, std::function<void(Stores&)>);
  // Refuses the call with the Error, or passes the databases that were not asked to `proceed`.
  std::function<void(const Result<Backend::Unasked>&)> passing(
      const CallPtr& call, std::function<void(const Backend::Unasked&)> proceed) const;
  void run(Post post, const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const;
};

}  // namespace tocsin
