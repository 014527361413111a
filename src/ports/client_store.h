// ClientStore: the store of client requests for jobs in one database: create, find, cancel, change, retry, and reports
// of leases. The REST API calls it, mostly with the requests of many callers in one call. A reply is definite;
// otherwise the call returns an Error, whose code says whether it may have happened (tocsin/error.h). Implemented by
// PgClientStore (src/postgres) and FakeDatabase (tests/support); tests/contract runs one suite on both.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ports/job_change.h"
#include "ports/job_store.h"
#include "tocsin/error.h"
#include "tocsin/job.h"

namespace tocsin {

// Of one request: created, cancelled or changed. tocsin.cancel_jobs() in SQL has the same bound.
inline constexpr std::size_t kMostJobsPerCall = 10'000;

// What to do when a job with the same (biz_type, biz_id, idempotency_key) exists.
enum class OnConflict {
  keep,      // same body (requested time, attribute, own max_attempts): returns the existing job; else refused
  replace,   // the pending job gets the new time, attribute and max_attempts, and attempts 0
  earliest,  // replace if the new time is earlier
  latest,    // replace if the new time is later
  reject,    // refused
};

struct NewJob {
  std::string biz_id;  // 1..128 bytes, valid UTF-8, no NUL
  TypeId type_id = 0;
  When when;
  int max_attempts = 16;
  bool has_own_max_attempts = false;  // given by the caller, so part of the idempotency fingerprint
  std::string attribute_json;         // valid JSON that jsonb accepts, or empty
  std::optional<std::string> idempotency_key;
  OnConflict on_conflict = OnConflict::keep;  // read only with a key
  std::optional<std::string> traceparent;
};

struct CreateReply {
  enum class Kind {
    created,
    existing,      // the key's job, unchanged
    updated,       // the key's pending job has the new time and attribute
    key_reused,    // refused: the key's job has another body
    rejected,      // refused: on_conflict = reject
    type_removed,  // refused: this database has no such type
    not_pending,   // refused: replace, earliest or latest of a job that runs or is finished
    locked,        // each_by_itself of several jobs, or each_but_held: another transaction holds the key, this one was
                   // not created; ask again
  };
  Kind kind = Kind::created;
  JobId job_id = 0;  // this and the times: of the created or the existing job
  WallTime action_time{};
  WallTime fire_at{};
  WallTime gmt_create{};
  std::optional<Job> existing;  // the key's job, as it is now; not for created and locked

  bool is_refused() const { return kind >= Kind::key_reused; }
};

enum class CreateMode {
  all_or_nothing,  // one refusal undoes the whole call; the replies say which job was refused
  each_by_itself,  // a refusal affects its job only; jobs whose keys other transactions hold come last, and wait for
                   // them a few seconds in all (a single job: then Error conflict)
  // As these; but if another transaction holds a key or its job: Error conflict after some 5 ms, nothing was created.
  all_if_free,
  each_if_free,
  // As each_by_itself; but waits some 5 ms for a held key, and for kMostHeldTries of them at most: what it has not
  // reached then is `locked` too.
  each_but_held,
};

constexpr bool waits_for_keys(CreateMode mode) {
  return mode == CreateMode::all_or_nothing || mode == CreateMode::each_by_itself;
}
constexpr bool is_undone_by_refusal(CreateMode mode) {
  return mode == CreateMode::all_or_nothing || mode == CreateMode::all_if_free;
}

// The newest jobs of a business key, of one type or of every type.
struct KeyQuery {
  std::string biz_id;
  std::optional<TypeId> type;
  std::optional<JobId> below;  // only jobs with a smaller id
  int limit = 100;             // at most kMostReadOfKey
};

// Jobs by descending id.
struct KeyList {
  std::vector<Job> jobs;
  std::optional<JobId> unread_below;  // of one type: the list is short, and jobs below this id were not read
};

// What a consumer's report needs to know of the job.
struct LeasedJob {
  TypeId type_id = 0;
  int attempts = 0;  // this one included
  int max_attempts = 0;
};

enum class LeaseReply {
  applied,
  stale,     // the lease has ended, or the job is finished; nothing was changed
  busy,      // nothing was changed, and the lease may be valid: another transaction holds the row, its shard is moving,
             // or the connection was lost before this lease was written; ask again
  in_doubt,  // the answer was lost; ask again. `stale` then means that it was written, or that the lease has ended
};

// A new end for a lease: `ttr` from now.
struct Extension {
  Lease lease;
  Duration ttr{0};
};

// Answer to finish_leased and extend.
struct LeaseResult {
  LeaseReply kind = LeaseReply::stale;
  TypeId type_id = 0;  // of the job; only if applied
};

// Job::biz_type is empty in replies; TypeCatalog maps type_id to the name.
// Thread: owner only (each thread has its own).
class ClientStore {
 public:
  virtual ~ClientStore() = default;

  // One reply per job, in order. One transaction; with each_by_itself and each_but_held more than one if other
  // transactions hold keys.
  // Durable when it returns. Error in_doubt: some or all may be created, and a look-up by id did not settle it.
  // REQUIRES: at most 10,000 jobs.
  static constexpr int kMostHeldTries = 64;
  virtual Result<std::vector<CreateReply>> create(std::span<const NewJob> jobs, CreateMode mode) = 0;

  // Pending jobs become cancelled; one reply per id, in order. Of an id given twice one reply is `cancelled`, the other
  // `finished`. Durable when it returns. Locked rows come last and are waited for as `wait` says; then they answer
  // `locked`, and so do jobs that were not reached before the connection was lost. With LockWait::none a locked row
  // delays the others by some 50 ms. Error in_doubt: some may be cancelled.
  virtual Result<std::vector<CancelReply>> cancel(std::span<const JobId> jobs, LockWait wait) = 0;

  // cancel() with LockWait::none for the jobs of a business key, of one type or of every type: kMostOfOneKey live ones
  // at most, first the pending ones, then those that run, each oldest first; then those that have ended, newest first:
  // of the newest kMostNamed of any type those of the type.
  static constexpr std::size_t kMostOfOneKey = kMostJobsPerCall;
  virtual Result<CancelAllReply> cancel_all(const std::string& biz_id, std::optional<TypeId> type) = 0;

  // Cancels, cancels by key, and changes, in this order. Changes and cancels by key that repeat a job or a key follow
  // in further rounds and see what earlier ones did; a repeated cancel answers as in cancel(). A round is one
  // transaction, or several if rows of it are locked. Durable when it returns. A locked row delays its round by some 50
  // ms; its own request answers `locked`. Error in_doubt: some may be written. REQUIRES: at most 1,000 requests.
  static constexpr std::size_t kMostOfOneKeyTogether = 100;
  static constexpr std::size_t kMostNamed = 1'000;
  virtual Result<ChangeBatchReply> change_together(const ChangeBatch& batch) = 0;

  // Jobs by id, live or finished, in order; nullopt: there is none.
  virtual Result<std::vector<std::optional<Job>>> find(std::span<const JobId> jobs) = 0;

  // Jobs by business key, one list per query, in order. A list of one type reads this many jobs of the key at most.
  static constexpr int kMostReadOfKey = 1'000;
  virtual Result<std::vector<KeyList>> list_keys(std::span<const KeyQuery> queries) = 0;

  // Dead jobs of types that are not removed become pending, due now, with attempts 0 and their errors. One reply per
  // id, in order. Of an id given twice one reply is `changed`. Waits for no lock. Error in_doubt: some may be changed.
  virtual Result<std::vector<ChangeReply>> retry_each(std::span<const JobId> jobs) = 0;

  // Dead jobs of a type that died in [from, to) become pending, those that died first in front. With rate_per_s they
  // become due at that rate, else now. At most `limit` (1..10,000). Skips locked rows. Returns how many.
  struct RetryMany {
    TypeId type_id = 0;
    std::optional<WallTime> from, to;
    int limit = 1000;
    std::optional<double> rate_per_s;
  };
  virtual Result<int> retry_many(const RetryMany& request) = 0;

  // The rest is about leases, whichever node granted them. One reply per lease, in order; a lease past its end is
  // stale, even if no other claim followed. finish_leased and extend wait for no lock and write the leases that they
  // can; each reply holds although others fail. Of a lease given twice one is written. Error: it is not known of any
  // lease whether it was written. REQUIRES: at most 10,000 leases in a call.

  // The jobs of these leases; nullopt: stale. Changes nothing.
  virtual Result<std::vector<std::optional<LeasedJob>>> leased(std::span<const Lease> leases) = 0;

  // As JobStore::finish, for valid leases only.
  virtual Result<std::vector<LeaseResult>> finish_leased(std::span<const FinishRequest> requests,
                                                         const std::string& node) = 0;

  // Lets each lease end its `ttr` from now, by the database's clock, be that later or earlier than before.
  virtual Result<std::vector<LeaseResult>> extend(std::span<const Extension> extensions) = 0;
};

}  // namespace tocsin
