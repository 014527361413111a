// JobStore: the store of the engine's stages in one database: scan, claim, fire, finish. Every call that writes is one
// transaction and a compare-and-set: a row in another state stays as it is, and the reply shows it. Implemented by
// PgJobStore (src/postgres) and FakeDatabase (tests/support); tests/contract runs one suite on both.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tocsin/error.h"
#include "tocsin/job.h"

namespace tocsin {

// The jobs of one type in one shard (a slice of all jobs, by hash).
struct Lane {
  Shard shard = 0;
  TypeId type_id = 0;
  auto operator<=>(const Lane&) const = default;
};

// An unclaimed row that a scan read, or that a hint named (a report of a new or moved job, so that it need not wait for
// a scan). The row may have changed since; only the claim tells.
struct Candidate {
  JobId job_id = 0;
  TypeId type_id = 0;
  WallTime fire_at{};
  std::uint8_t retries = 0;  // earlier claims that lost it, perhaps because they came early by the database's clock
  Lane lane() const { return {shard_of(job_id), type_id}; }
};

// Rows with (fire_at, job_id) > (from, after_id) and fire_at <= to. Ids begin at 1, so after_id 0 includes the rows due
// at `from`.
struct DueSpan {
  WallTime from, to;
  JobId after_id = 0;
  DueSpan(WallTime begin = WallTime::min(), WallTime end = WallTime::max()) : from(begin), to(end) {}
  std::pair<WallTime, JobId> after() const { return {from, after_id}; }
  void begin_after(std::pair<WallTime, JobId> position) { std::tie(from, after_id) = position; }
};

// Live rows of one lane with (fire_at, job_id) > (after, after_id) and fire_at < before: the first `limit` rows in the
// order of (fire_at, job_id).
struct ScanRange {
  Lane lane;
  WallTime after{};
  JobId after_id = 0;
  WallTime before{};
  int limit = 0;
};

// Finds lanes that have a row with fire_at < before. Each walk selects the lanes of one shard with types from `first`
// to `last`. Returns at most `limit` lanes, in any order.
//
// Two methods give the same answer. A walk takes one index probe for each lane that has rows. Reading the whole index
// costs about a 60th of a probe for each row, so it is faster if lanes have few rows.
struct LaneSearch {
  struct Walk {
    Shard shard = 0;
    TypeId first = 0, last = 0;  // both included
  };
  std::vector<Walk> walks;
  WallTime before{};
  int limit = 0;
  std::int64_t most_bytes = 0;  // an index of at most this size is read, a larger one is walked; 0: always walk
};

struct ScanReply {
  struct Row {
    Candidate candidate;
    bool is_exhausted = false;  // its last attempt runs: never claim it; make it dead once the lease has ended
  };
  std::vector<std::vector<Row>> rows;  // one list per range asked, in the order asked
  std::vector<Lane> lanes;             // found by the search
  std::optional<std::size_t> walked;   // number of lanes with rows that the walk met; nullopt: the index was read
  WallTime db_now{};                   // the database's clock, read between `asked` and `answered`
  MonoTime asked{}, answered{};        // the local clock before the request and after the reply
  // Number of the session's connection. Another number than before may mean another server, without the last commits.
  std::uint64_t connection = 0;
  // For XminWatermark (src/pipeline): transaction ids, and the begin of the scan by the database's clock. Every
  // transaction with an id before oldest_writer had ended at `began`, so the scan saw what it committed. With
  // WriterMark::set no transaction with the id next_writer or a later one existed at `began`. With WriterMark::none
  // next_writer is the highest number there is.
  WallTime began{};
  std::int64_t oldest_writer = 0;
  std::int64_t next_writer = std::numeric_limits<std::int64_t>::max();
};

// Whether a scan takes a transaction id itself, which costs the id and a small commit record.
enum class WriterMark { none, set };

// Who claims, and the claim seed: the random number of one claim statement. The token of each claimed job is
// hash(job_id, seed), so the tokens are known even if the answer is lost. REQUIRES: a fresh random seed for every
// statement; otherwise two attempts of a job could have the same token.
struct ClaimTicket {
  std::int64_t seed = 0;
  std::string node;  // name of the claiming node, only a label
  // True: claim and claim_due wait until the commit is on disk, so that no crash of the database undoes the claim.
  // Needed for handlers that start outside of the database.
  bool is_durable = false;
  // A lower bound of the database's clock before the claim is sent. claimed_with() of a lane reads from here on.
  WallTime sent_after{};
};

struct RefusedClaim {
  JobId job_id = 0;
  Error why;
};

// What a claim did. Jobs in none of the lists were not due, or locked.
struct Claims {
  std::vector<ClaimedJob> won;        // in any order, each job once
  std::vector<RefusedClaim> refused;  // claim(): the database refuses their rows
  std::size_t untried = 0;            // claim(): so many jobs at the end were left, because refused rows took too long
  bool is_cut_short = false;          // claim_due(): few were asked for, because of a refused row; more may be due
};

// A job of an instant type that was claimed and finished in one statement.
struct Fired {
  JobId job_id = 0;
  TypeId type_id = 0;
  WallTime due_at{};  // lateness is counted from this time, see Job::due_at()
  WallTime started_at{};
};

struct FinishRequest {
  enum class Kind {
    done,   // to history
    dead,   // to history, with `message` among the errors
    retry,  // pending again, due after `delay`, with `message` among the errors
    // Undoes the claim of an attempt that never started: pending again, the attempt not counted. Due after `delay`,
    // which is negative to restore an earlier time.
    release_claim,
  };
  JobId job_id = 0;
  ClaimToken token = 0;
  Kind kind = Kind::done;
  // From now, by the database's clock. A row whose attempts began at or after its deadline is due again at the deadline
  // at the earliest: the clock may have been set back since.
  Duration delay{0};
  std::string message;  // valid UTF-8 without NUL (base/utf8.h)
};

enum class FinishReply {
  applied,
  stale,  // another claim, or none, holds the job: nothing was changed
  busy,   // nothing was changed: another transaction holds the row locked, or its shard is moving; ask again
};

// Identifies a lease: the job, and the token of the claim that began the lease.
struct Lease {
  JobId job_id = 0;
  ClaimToken token = 0;
};

// Thread: owner only (each thread has its own).
class JobStore {
 public:
  virtual ~JobStore() = default;

  // Limits how long each later call waits for an answer. A call that reaches the limit returns an Error (in_doubt if
  // it writes, unavailable if it reads), and its connection is closed. The server's work for that call ends before a
  // later call begins, except through a pooler. Before the first answer_within() the limit is that of the session.
  virtual void answer_within(Duration /*limit*/) {}

  // Reads the ranges and searches for lanes, in one statement. Locks and changes nothing.
  virtual Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark mark) = 0;
  Result<ScanReply> scan(std::span<const ScanRange> ranges) { return scan(ranges, LaneSearch{}, WriterMark::none); }

  // Claims jobs of `jobs`, with lease lengths `ttr` in the same order.
  //  - A job is claimed if it is due by the database's clock: live, of the given type, fire_at passed, attempts left. A
  //    running row whose lease has ended is due again; that expiry is added to the job's errors. (The type is compared
  //    because after a failover another job may have the same id.)
  //  - A claim sets status running, attempts + 1, a fresh token and fire_at = now + ttr. Locked rows are skipped.
  //  - Returns the jobs won, with fire_at_before. The caller sets biz_type, lease_deadline and start_by.
  //  - A row that the database refuses (ports/row_refusal.h) costs no other job its claim. The search for it makes
  //    several statements, and ends when they took as long as one may take.
  // REQUIRES: ttr.size() == jobs.size(), at most 10,000 jobs.
  virtual Result<Claims> claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                               const ClaimTicket& ticket) = 0;

  // As claim(), for the oldest due rows of a lane within the span, at most `limit`, all with the lease length `ttr`.
  // Claims backlog: overdue rows that are not in memory. Fewer than `limit` jobs won, and not cut short: nothing else
  // was due and unlocked. A row error: the database refuses the first row.
  virtual Result<Claims> claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket) = 0;

  // For a claim that returned Error in_doubt: the jobs that the claim with this ticket won and still holds, also those
  // whose lease has ended, each once, without fire_at_before. Pass the ids of the `jobs` of claim(), or the `lane` of
  // claim_due().
  virtual Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) = 0;
  virtual Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, Lane lane) = 0;

  // For instant types: claims, counts the attempt and finishes as done, in one statement. The conditions are those of
  // claim() and claim_due(). fire() may wait 20 ms for locked rows before it skips them. Returns the jobs fired. After
  // Error in_doubt no further question is needed: fired jobs are finished, and the others are as before.
  virtual Result<std::vector<Fired>> fire(std::span<const Candidate> jobs, const std::string& node) = 0;
  virtual Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node) = 0;

  // Writes outcomes of attempts whose token the row still has; one reply per request, in order. `node`: name of this
  // node, for the jobs' errors. Safe to repeat: a request that was applied before is answered `stale`.
  virtual Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node) = 0;

  // Returns how long each lease is valid from now on, in order. nullopt: the lease has ended. 0: unknown, because its
  // shard does not live in this database, or is moving. Changes nothing. REQUIRES: at most 10,000 leases.
  virtual Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease> leases) = 0;

  // Makes jobs of `jobs` dead if they are running, their lease has ended and their attempts are used up. Skips locked
  // rows. Returns how many it made dead.
  virtual Result<int> mark_dead(std::span<const JobId> jobs) = 0;

  // Makes the oldest too late jobs of a lane dead, at most `limit`; their last error is "too late".
  //  - A job is too late if its fire_at is before `before` and, by the database's clock, longer ago than its type's
  //    drop_older_than in the registry. A type without drop_older_than loses no job.
  //  - The job must be pending, or running with its lease ended.
  //  - Locked rows are skipped, and so are the first `passed` of the unlocked rows.
  // Returns how many it made dead; fewer than `limit`: no other unlocked row is left.
  virtual Result<int> drop_too_late(Lane lane, WallTime before, int limit, int passed, const std::string& node) = 0;
};

}  // namespace tocsin
