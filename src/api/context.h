// What every endpoint has at hand: the backend, the limits, and the answers they all share.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "api/backend.h"
#include "api/router.h"

namespace tocsin {

inline constexpr Duration kHintWindow =
    std::chrono::seconds(6);  // the wheel's lookahead of 5 s, and room for the way there

// Thread: any.
class ApiContext {
 public:
  ApiContext(Backend& b, std::size_t max_attribute) : backend(b), max_attribute_bytes(max_attribute) {}

  // Runs `work` on a thread of this database; answers 429 when its queue is full, 503 when it cannot be used.
  void on_database(const CallPtr& call, Place place, std::function<void(Stores&)> work) const;
  // The same for reads that may be slow.
  void read_database(const CallPtr& call, Place place, std::function<void(Stores&)> work) const;
  void on_home(const CallPtr& call, std::function<void(Stores&)> work) const { on_database(call, 0, std::move(work)); }
  static void too_busy(const CallPtr& call);

  // Calls `use` with the type of this name, at once when it is known; else after the registry was read again (at most
  // once a second), on a database thread. A type that nobody knows is answered 422 with `field`.
  void with_type(const CallPtr& call, const std::string& name, const std::string& field,
                 std::function<void(const BizType&)> use);
  // The same on a database thread (not home's: what is known has to do): null when nobody knows it.
  std::shared_ptr<const BizType> find_type(Stores& stores, const std::string& name);
  // The catalog to name the types of `jobs` with: read again (at most once a second) when it lacks one. On a database
  // thread.
  std::shared_ptr<const TypeCatalog> catalog_for(Stores& stores, std::span<const Job> jobs);
  static Problem unknown_type(const std::string& name, const std::string& field);

  Problem problem_of(const Error& error, Place place) const;  // that the database at `place` answered with
  void hint_if_soon(JobId job, TypeId type, WallTime fire_at) const;

  // The id that the path names; 0 (after the answer was given) when no job can have it.
  JobId job_id_of(const CallPtr& call) const;
  Place place_of(JobId id) const { return backend.place_of(shard_of(id)); }
  Place place_of(const std::string& biz_id) const { return backend.place_of(shard_of(biz_id, backend.shards())); }
  bool may_exist(JobId id) const { return id > 0 && shard_of(id) < backend.shards(); }
  static Problem no_such_job();

  Backend& backend;
  const std::size_t max_attribute_bytes;

 private:
  bool may_reload();
  std::atomic<Duration::rep> last_reload_ = 0;  // of the database's clock
};

}  // namespace tocsin
