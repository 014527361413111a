// ApiContext: what every REST handler uses: the backend, limits, look-ups of types, common answers.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "api/backend.h"
#include "api/router.h"
#include "api/type_lookup.h"

namespace tocsin {

// Jobs due sooner are hinted: the lookahead of scans (5 s), and a second for the way to the owner.
inline constexpr Duration kHintWindow = std::chrono::seconds(6);

// Thread: any.
class ApiContext {
 public:
  ApiContext(Backend& b, std::size_t max_attribute) : backend(b), max_attribute_bytes(max_attribute) {}

  // Runs `work` on a thread of this database; or answers the call: 429 when its queue is full, 503 when the database
  // cannot be used, 500 when `work` throws.
  void on_database(const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const;
  // The same for reads that may be slow.
  void read_database(const CallPtr& call, DatabaseId database_id, std::function<void(Stores&)> work) const;
  void on_control(const CallPtr& call, std::function<void(Stores&)> work) const {
    on_database(call, 0, std::move(work));
  }
  static Problem busy();
  static void too_busy(const CallPtr& call) { call->refuse(busy()); }

  // Calls `use` with the type of this name: at once when this node knows it, else after a read of the registry that
  // began after this call (type_lookup.h), on a thread of the control database. A name that this read does not find is
  // answered with `refusal`; a failed read is answered 503 or 429.
  using Refusal = std::function<Problem(const std::string& name)>;
  void with_type(const CallPtr& call, const std::string& name, Refusal refusal,
                 std::function<void(const BizType&)> use);
  // The same, unknown names are answered 422 with `field`.
  void with_type(const CallPtr& call, const std::string& name, const std::string& field,
                 std::function<void(const BizType&)> use);
  // The same for reads: finds removed types, too.
  void with_any_type(const CallPtr& call, const std::string& name, const std::string& field,
                     std::function<void(const BizType&)> use);
  // Calls `use` with a snapshot that has the types of all `jobs`, to name them; with an older one when the registry
  // does not answer.
  void with_catalog(const CallPtr& call, std::span<const Job> jobs, std::function<void(const TypeCatalog&)> use);
  static Problem unknown_type(const std::string& name, const std::string& field);

  Problem problem_of(const Error& error, DatabaseId database_id) const;  // for an error of that database
  void hint_if_soon(JobId job, TypeId type, WallTime fire_at) const;     // within kHintWindow

  // The job id in the path. 0: no job can have this id, and the call was answered (400 or 404).
  JobId job_id_of(const CallPtr& call) const;
  DatabaseId database_of(JobId id) const { return backend.database_of(shard_of(id)); }
  DatabaseId database_of(const std::string& biz_id) const {
    return backend.database_of(shard_of(biz_id, backend.shards()));
  }
  bool may_exist(JobId id) const { return id > 0 && shard_of(id) < backend.shards(); }
  static Problem no_such_job();

  Backend& backend;
  const std::size_t max_attribute_bytes;
  TypeLookup lookup{*this};
};

}  // namespace tocsin
