// BizType: a type of jobs (a kind of timeout, such as "order.unpaid") with its handler, retries and limits.
// TypeCatalog: a snapshot of all types.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tocsin/job.h"
#include "tocsin/start_pool.h"

namespace tocsin {

// Delay before attempt n+1. With a list: delays[n-1], and the last entry repeats. Without one: base * factor^(n-1), at
// most max, then times a random factor in [1 - jitter, 1 + jitter], so up to max * (1 + jitter).
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
  std::string handler_kind;  // how its jobs are delivered: "noop", "webhook", "cpp", "sql", "pull", or a broker's
  std::string handler_json;  // settings of the handler, a JSON object as text, `kind` included
  Duration ttr = std::chrono::seconds(30);  // time to run: length of the lease of an attempt
  int max_attempts = 16;
  Backoff backoff;
  // Limits of the whole cluster; nullopt: none. max_running counts jobs in handlers, and jobs leased to consumers or
  // webhook receivers; instant types ignore it.
  std::optional<int> max_running;
  std::optional<double> rate_per_s;           // starts (of pull types: leases), retries included
  std::optional<Duration> drop_older_than;    // catch_up.drop_older_than_ms: jobs due longer ago become dead
  std::optional<double> catch_up_rate_per_s;  // catch_up.rate_per_s: starts of jobs found over a lookahead (5 s) late
  std::optional<Slo> slo;                     // for reports only
  bool paused = false;
  std::optional<WallTime> paused_until;  // if paused: when it resumes by itself; empty: not by itself
  bool is_removed = false;               // takes no new jobs; existing ones still run
  WallTime gmt_create{};
  WallTime gmt_modified{};
  // Not stored: the start pool of its handler on this node (Handler::pool()), which bounds attempts and which other
  // types may share. Null: nothing bounds them.
  std::shared_ptr<const StartPool> pool;

  bool operator==(const BizType&) const = default;
  bool is_instant() const { return handler_kind == "noop"; }  // claimed and finished in one statement
  bool is_pull() const { return handler_kind == "pull"; }     // claimed when a consumer asks
  // Its handler looks up the claim in the transaction that runs it, so an attempt whose claim was undone does not
  // start.
  bool starts_in_database() const { return handler_kind == "sql"; }
  bool is_paused(WallTime now) const { return paused && (!paused_until || now < *paused_until); }
  bool is_limited() const { return max_running || rate_per_s || catch_up_rate_per_s; }
  // Whether a job is due longer ago than drop_older_than, so that it becomes dead instead of running.
  bool is_too_late(WallTime fire_at, WallTime now) const { return drop_older_than && fire_at < now - *drop_older_than; }
};

// Tells two states of the registry apart without reading the types: every change of a type sets its gmt_modified to a
// later time, so that the sum grows, and a deletion changes the number.
struct RegistryVersion {
  std::int64_t types = 0;  // their number, removed ones included
  std::int64_t sum = 0;    // of gmt_modified in microseconds, modulo 2^62

  bool operator==(const RegistryVersion&) const = default;
};

using SharedType = std::shared_ptr<const BizType>;

// A snapshot of the registry, replaced as a whole. `types` and `by_name` leave out removed types; `by_id` has them.
// Thread: const after construction.
struct TypeCatalog {
  std::vector<SharedType> types;  // sorted by name
  std::unordered_map<std::string, SharedType> by_name;
  std::unordered_map<std::string, SharedType> removed;
  std::unordered_map<TypeId, SharedType> by_id;
  RegistryVersion version;  // of all types, removed ones included
  WallTime newest{};        // the latest gmt_modified of all types, removed ones included
  // The shortest ttr, at most BizType's default, of the types whose outcomes the finisher writes (not of instant, pull
  // and `sql` types). It limits how long the finisher waits for the database.
  Duration shortest_ttr = BizType{}.ttr;

  explicit TypeCatalog(std::vector<BizType> all = {});
  explicit TypeCatalog(const std::vector<SharedType>& all);
  // nullptr: not found. Valid as long as the catalog.
  const BizType* find(const std::string& name) const;      // without removed types
  const BizType* find_any(const std::string& name) const;  // removed types, too
  const BizType* find(TypeId id) const;                    // removed types, too
};

}  // namespace tocsin
