// ClientStore: the store of client requests for jobs in one database: create, find, cancel, change, retry, and what
// consumers report about their leases. The REST API (src/api) and its request queues (src/service) call it, mostly with
// the requests of many callers in one call. A reply is definite. Instead of replies a call may return an Error, whose
// code says whether the call may have happened (tocsin/error.h). Implemented by PgClientStore (src/postgres) and
// FakeDatabase (tests/support); tests/contract runs one suite on both.
//
// A row that the database refuses to write (ports/row_refusal.h) costs only the job, request or lease that it belongs
// to, except in a call that is all or nothing. The store finds it in smaller and smaller parts of the call. After
// kMostRefusedInARow such rows, one after the other, the rest of its kind is answered as refused without a try. So a
// database that refuses everything costs the logarithm of the number of rows, and these tries.
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

// The most jobs that one request creates, cancels or changes. tocsin.cancel_jobs() in SQL has the same bound.
inline constexpr std::size_t kMostJobsPerCall = 10'000;

// What to do when a job with the same (biz_type, biz_id, idempotency_key) exists.
enum class OnConflict {
  keep,      // returns the existing job if it has the same body (requested time, attribute, own max_attempts);
             // otherwise refused
  replace,   // the existing job, if pending, gets the new time, attribute and max_attempts, and attempts 0
  earliest,  // as replace, if the new time is earlier; otherwise returns the existing job
  latest,    // as replace, if the new time is later; otherwise returns the existing job
  reject,    // refused
};

struct NewJob {
  std::string biz_id;  // 1..128 bytes, valid UTF-8, no NUL
  TypeId type_id = 0;
  When when;
  int max_attempts = 16;
  bool has_own_max_attempts = false;  // the caller gave max_attempts, so it is part of the idempotency fingerprint
  std::string attribute_json;         // valid JSON that jsonb accepts, or empty
  std::optional<std::string> idempotency_key;
  OnConflict on_conflict = OnConflict::keep;  // read only with a key
  std::optional<std::string> traceparent;
};

struct CreateReply {
  enum class Kind {
    created,
    existing,      // the job that has the key is returned unchanged
    updated,       // the pending job that has the key got the new time and attribute
    key_reused,    // refused: the job that has the key has another body
    rejected,      // refused: on_conflict = reject
    type_removed,  // refused: this database has no such type
    not_pending,   // refused: replace, earliest or latest of a job that runs or is finished
    locked,        // not created: another transaction holds the key; ask again. Only from each_by_itself with several
                   // jobs, and from each_but_held
    invalid,       // refused: the database does not take its values. From the same calls; others end with an Error
    unwritable,    // refused: the database cannot write the row now, or was not asked because it refuses many; ask
                   // again. From the same calls; others end with an Error
  };
  Kind kind = Kind::created;
  JobId job_id = 0;  // of the created or the existing job; so are the three times
  WallTime action_time{};
  WallTime fire_at{};
  WallTime gmt_create{};
  std::optional<Job> existing;  // the job that has the key, as it is now; empty for created and locked

  std::string why{};  // invalid, unwritable: the database's reason

  bool is_refused() const { return kind >= Kind::key_reused; }
};

// What one refused job does to the others, and whether a call waits for idempotency keys that another transaction holds
// (that transaction creates or changes a job with the key, and has not ended).
enum class CreateMode {
  all_or_nothing,  // a refusal undoes the whole call, and the replies say which job was refused; waits for keys
  each_by_itself,  // a refusal affects its job only. Jobs with held keys come last, and wait a few seconds in all. A
                   // single job: Error conflict after the wait
  // As all_or_nothing and each_by_itself. But if another transaction holds a key or its job: Error conflict after some
  // 5 ms, and nothing was created.
  all_if_free,
  each_if_free,  // a row that the database refuses to write ends the call with its Error: nothing was created
  // As each_by_itself, but waits only some 5 ms for a held key, and so at most kMostHeldTries times. Jobs that were not
  // reached by then are answered `locked`, too.
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
  std::optional<JobId> unread_below;  // the list is short, and jobs below this id were not read
};

// What a consumer's report needs to know of the job.
struct LeasedJob {
  TypeId type_id = 0;  // 0: nothing is known of the lease, because the job's shard does not live in this database
  int attempts = 0;    // the attempt under way included
  int max_attempts = 0;
};

enum class LeaseReply {
  applied,
  stale,     // nothing was changed: the lease has ended, or the job is finished
  busy,      // nothing was changed, and the lease may be valid: another transaction holds the row, its shard is moving,
             // or the connection was lost before this lease was written; ask again
  moved,     // nothing was changed, and the lease may be valid: its shard does not live in this database; ask again,
             // there if it lives in another one
  in_doubt,  // the answer was lost; ask again. A later `stale` means that it was written, or that the lease has ended
  refused,   // nothing was changed, and the lease may be valid: the database refuses to write the row, or was not asked
             // because it refuses many; ask again
};

// A new end for a lease: `ttr` from now.
struct Extension {
  Lease lease;
  Duration ttr{0};
};

// Answer to finish_leased and extend.
struct LeaseResult {
  LeaseReply kind = LeaseReply::stale;
  TypeId type_id = 0;  // type of the job; set only if applied
  std::string why{};   // refused: the database's reason
};

// Job::biz_type is empty in replies; the caller finds the name of type_id in the TypeCatalog.
// Thread: owner only (each thread has its own).
class ClientStore {
 public:
  virtual ~ClientStore() = default;

  // Creates jobs; one reply per job, in order. Uses one transaction. With each_by_itself and each_but_held it uses more
  // if other transactions hold keys. Durable when it returns. Error in_doubt: some or all jobs may be created, and a
  // look-up by id did not settle it. REQUIRES: at most 10,000 jobs.
  static constexpr int kMostHeldTries = 64;
  virtual Result<std::vector<CreateReply>> create(std::span<const NewJob> jobs, CreateMode mode) = 0;

  // Makes pending jobs cancelled; one reply per id, in order. Durable when it returns.
  //  - Of an id given twice one reply is `cancelled`, the other `finished`.
  //  - Locked rows come last. `wait` says whether the call waits for them; rows that are still locked then are answered
  //    `locked`. With LockWait::none a locked row delays the others by some 50 ms.
  //  - Jobs that were not reached before the connection was lost, or that cannot be read because their table is locked,
  //    are answered `locked`, too, if others have an answer.
  // Error in_doubt: some jobs may be cancelled. Error of a refused row: the database refuses all jobs.
  virtual Result<std::vector<CancelReply>> cancel(std::span<const JobId> jobs, LockWait wait) = 0;

  // As cancel() with LockWait::none, for the jobs of a business key, of one type or of every type. Cancels and answers
  // at most kMostOfOneKey live jobs: first the pending, then the running ones, each oldest first. Jobs that have ended
  // follow, newest first: jobs of the type among the newest kMostNamed ended jobs of the key.
  static constexpr std::size_t kMostOfOneKey = kMostJobsPerCall;
  virtual Result<CancelAllReply> cancel_all(const std::string& biz_id, std::optional<TypeId> type) = 0;

  // Makes the cancels, cancels by key and changes of a batch, in this order. Durable when it returns.
  //  - A cancel by key or a change that repeats a key or job follows in a further round, and sees what earlier rounds
  //    did. A repeated cancel is answered as in cancel().
  //  - A round is one transaction, or several if rows of it are locked.
  //  - A locked row delays its round by some 50 ms; its own request is answered `locked`.
  //  - A request of which the database refuses a row is answered with its Error, and costs no other one. So is one
  //    that changed nothing and whose job or key cannot be read.
  // Error in_doubt: some requests may be written. REQUIRES: at most 1,000 requests.
  static constexpr std::size_t kMostOfOneKeyTogether = 100;
  static constexpr std::size_t kMostNamed = 1'000;
  virtual Result<ChangeBatchReply> change_together(const ChangeBatch& batch) = 0;

  // Returns jobs by id, live or finished, in order; nullopt: there is no such job.
  virtual Result<std::vector<std::optional<Job>>> find(std::span<const JobId> jobs) = 0;

  // Returns jobs by business key, one list per query, in order. A query with a type reads at most kMostReadOfKey jobs
  // of the key. A list ends with the job with which its attributes reach kMostBytesOfList.
  static constexpr int kMostReadOfKey = 1'000;
  static constexpr int kMostBytesOfList = 1 << 20;
  virtual Result<std::vector<KeyList>> list_keys(std::span<const KeyQuery> queries) = 0;

  // Makes dead jobs of types that are not removed pending, due now, with attempts 0 and their errors. One reply per id,
  // in order. Of an id given twice one reply is `changed`. A job that the database refuses to revive has its own Error,
  // and so has one that was not revived and cannot be read; neither costs another one. Waits for no locked row, and for
  // a key that another transaction holds, or a locked table, some 5 ms; ten times at most. Jobs that were not reached
  // by then, or after kMostRefusedInARow refused ones, are answered `locked`, as those with a held key and those of a
  // type whose removal is undecided are; further calls reach them. A dead job whose id a live job has gets a fresh id,
  // and the id is answered for the live one. Error in_doubt: some may be changed.
  virtual Result<std::vector<Result<ChangeReply>>> retry_each(std::span<const JobId> jobs) = 0;

  // Makes at most `limit` (1..10,000) dead jobs of a type pending that died in [from, to), first the jobs that died
  // first. They become due now, or one after the other at rate_per_s. Skips locked rows, jobs whose keys another
  // transaction holds, and jobs that the database refuses to revive, and takes later ones instead; waits for keys and
  // locked tables 3 s at most in all, and ends at kMostRefusedInARow refused jobs. A job whose id a live job has gets a
  // fresh id, with which a further call finds it. Returns how many became pending. Error: none, because those that it
  // has found were held or refused, or because the removal of the type is undecided. Error in_doubt: some may be
  // pending.
  struct RetryMany {
    TypeId type_id = 0;
    std::optional<WallTime> from, to;
    int limit = 1000;
    std::optional<double> rate_per_s;
  };
  virtual Result<int> retry_many(const RetryMany& request) = 0;

  // The rest is about leases, whichever node granted them. Returns one reply per lease, in order. A lease past its end
  // is stale, even if no other claim followed. finish_leased and extend wait for no lock and write the leases that they
  // can; each reply holds even if others fail. Of a lease given twice one is written. A lease whose row the database
  // refuses to write is `refused`, and costs no other one. Error: each lease may or may not have been written.
  // REQUIRES: at most 10,000 leases in a call.

  // Returns the jobs of these leases; nullopt: stale. Changes nothing.
  virtual Result<std::vector<std::optional<LeasedJob>>> leased(std::span<const Lease> leases) = 0;

  // Writes outcomes as JobStore::finish does, but only for leases that have not ended.
  virtual Result<std::vector<LeaseResult>> finish_leased(std::span<const FinishRequest> requests,
                                                         const std::string& node) = 0;

  // Sets the end of each lease to now + its `ttr`, by the database's clock, which may be earlier than before; not
  // before the job's deadline (see FinishRequest::delay).
  virtual Result<std::vector<LeaseResult>> extend(std::span<const Extension> extensions) = 0;
};

}  // namespace tocsin
