// A type of jobs (a kind of timeout, such as "order.unpaid"): its handler, retries and limits; and the registry's
// snapshot of all types.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tocsin/job.h"
#include "tocsin/start_pool.h"

namespace tocsin {

// Delay before attempt n+1: delays[n-1] when a list is given (the last entry repeats), else base * factor^(n-1), at
// most max, times a random factor in [1 - jitter, 1 + jitter].
struct Backoff {
  Duration base = std::chrono::seconds(1);
  double factor = 2;
  Duration max = std::chrono::hours(1);
  double jitter = 0.2;           // 0..1
  std::vector<Duration> delays;  // empty: exponential

  bool operator==(const Backoff&) const = default;
};

// The target for first starts: at least `share` of them begin within `lateness` after they are due.
struct Slo {
  Duration lateness{0};
  double share = 1;  // 0..1

  bool operator==(const Slo&) const = default;
};

struct BizType {
  TypeId type_id = 0;
  std::string name;
  std::string handler_kind;                 // "noop", "webhook", "cpp", "pull", ...
  std::string handler_json;                 // the whole handler object as JSON text
  Duration ttr = std::chrono::seconds(30);  // time to run: length of a lease
  int max_attempts = 16;
  Backoff backoff;
  // In the whole cluster: jobs in handlers, and jobs that consumers have leased. Not for instant types.
  std::optional<int> max_running;
  std::optional<double> rate_per_s;           // starts (of pull types: leases), retries included
  std::optional<Duration> drop_older_than;    // catch_up.drop_older_than_ms: jobs later than this become dead
  std::optional<double> catch_up_rate_per_s;  // catch_up.rate_per_s: starts of jobs that were found late
  std::optional<Slo> slo;                     // for reports only
  bool paused = false;
  std::optional<WallTime> paused_until;  // with paused: resumes by itself then
  bool is_removed = false;               // takes no new jobs; existing ones still run
  WallTime gmt_create{};
  WallTime gmt_modified{};
  // Not in the registry: the slots that its attempts share with other types on this node. Null: none.
  std::shared_ptr<const StartPool> pool;

  bool operator==(const BizType&) const = default;
  bool is_instant() const { return handler_kind == "noop"; }  // claimed, run and finished in one statement
  bool is_pull() const { return handler_kind == "pull"; }     // claimed when a consumer asks
  // The handler looks up its claim in the transaction that runs it: without the claim nothing starts.
  bool starts_in_database() const { return handler_kind == "sql"; }
  bool is_paused(WallTime now) const { return paused && (!paused_until || now < *paused_until); }
  bool is_limited() const { return max_running || rate_per_s || catch_up_rate_per_s; }
  // Whether a job is dropped: due longer ago than drop_older_than.
  bool is_too_late(WallTime fire_at, WallTime now) const { return drop_older_than && fire_at < now - *drop_older_than; }
};

// Tells two states of the registry apart: every change of a type moves its gmt_modified forward, and a type is
// forgotten long after its last change. So the sum grows whenever the number of types stays.
struct RegistryVersion {
  std::int64_t types = 0;
  std::int64_t sum = 0;  // of gmt_modified in microseconds, modulo 2^62

  bool operator==(const RegistryVersion&) const = default;
};

using SharedType = std::shared_ptr<const BizType>;

// An immutable snapshot of the registry; replaced as a whole. `types` and by_name have no removed types.
struct TypeCatalog {
  std::vector<SharedType> types;  // by name
  std::unordered_map<std::string, SharedType> by_name;
  std::unordered_map<std::string, SharedType> removed;
  std::unordered_map<TypeId, SharedType> by_id;
  RegistryVersion version;  // of all types, removed ones included
  WallTime newest{};        // the latest gmt_modified of them
  // Shortest ttr of the types whose outcomes the engine writes: consumers and sql handlers write their own.
  Duration shortest_ttr = BizType{}.ttr;

  explicit TypeCatalog(std::vector<BizType> all = {});
  explicit TypeCatalog(const std::vector<SharedType>& all);
  const BizType* find(const std::string& name) const;
  const BizType* find_any(const std::string& name) const;  // removed ones, too
  const BizType* find(TypeId id) const;
};

}  // namespace tocsin
