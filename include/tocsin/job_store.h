// What the engine asks of one database. Every verb that writes is one transaction and a compare-and-set: a row that no
// longer has the state the verb names is left alone, and the reply says so. Implemented by PgJobStore (src/postgres)
// and FakeDatabase (tests/support); tests/contract runs one suite on both.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tocsin/error.h"
#include "tocsin/job.h"

namespace tocsin {

// The jobs of one type in one shard.
struct Lane {
  Shard shard = 0;
  TypeId type_id = 0;
  auto operator<=>(const Lane&) const = default;
};

// A row that a scan has seen: unclaimed, unlocked, a hint only.
struct Candidate {
  JobId job_id = 0;
  TypeId type_id = 0;
  WallTime fire_at{};
  std::uint8_t retries = 0;  // claims by id that came too early by the database's clock
  Lane lane() const { return {shard_of(job_id), type_id}; }
};

// From `from` to `to`, both included.
struct DueSpan {
  WallTime from, to;
  DueSpan(WallTime begin = WallTime::min(), WallTime end = WallTime::max()) : from(begin), to(end) {}
};

// Rows of one lane with (fire_at, job_id) > (after, after_id) and fire_at < before, in that order, at most `limit` of
// them.
struct ScanRange {
  Lane lane;
  WallTime after{};
  JobId after_id = 0;
  WallTime before{};
  int limit = 0;
  bool only_exhausted = false;
};

// Finds the lanes that have a row with fire_at < before: of each shard named, of the types from first to last. Lanes
// without rows cost nothing, the others an index probe each. At most `limit` lanes are told.
struct LaneSearch {
  struct Walk {
    Shard shard = 0;
    TypeId first = 0, last = 0;
  };
  std::vector<Walk> walks;
  WallTime before{};
  int limit = 0;
};

struct ScanReply {
  struct Row {
    Candidate candidate;
    bool is_exhausted = false;  // running its last allowed attempt: to be buried, not claimed, once the lease has ended
  };
  std::vector<std::vector<Row>> rows;  // one list per range asked, in the order asked
  std::vector<Lane> lanes;             // that the search found
  WallTime db_now{};                   // the database's clock, read between `asked` and `answered`
  MonoTime asked{}, answered{};        // the local clock before the request and after the reply
  std::uint64_t connection = 0;        // another than before: maybe to another server, that lacks the last commits
  // What the scan could not see: changes of transactions numbered oldest_writer or above. By `began`, of the database's
  // clock, none numbered next_writer or above had changed anything.
  WallTime began{};
  std::int64_t oldest_writer = 0;
  std::int64_t next_writer = std::numeric_limits<std::int64_t>::max();
};

// Draws the claim tokens of one claim: token = hash(job_id, seed). A fresh random seed per claim, or a claim that was
// lost in a crash would hand the same token out twice.
struct ClaimTicket {
  std::int64_t seed = 0;
  std::string node;  // name of the claiming node, only a label
  // Only claim and claim_due: a crash of the database does not take the claim back. For claims whose work starts
  // outside of the database.
  bool is_durable = false;
};

// An instant job that was claimed, run and finished in one statement.
struct Fired {
  JobId job_id = 0;
  TypeId type_id = 0;
  WallTime due_at{};  // as Job::due_at(): lateness is counted from it
  WallTime started_at{};
};

struct FinishRequest {
  enum class Kind {
    done,   // to history
    dead,   // to history, with `message` among the errors
    retry,  // pending again, due after `delay`, with `message` among the errors
    // Pending again, this attempt not counted: it never started. Due after `delay`, which may be negative: at the time
    // that it had before the claim.
    give_back,
  };
  JobId job_id = 0;
  ClaimToken token = 0;
  Kind kind = Kind::done;
  Duration delay{0};
  std::string message;
};

enum class FinishReply {
  applied,
  stale,  // the claim is not this one's any more: nothing was changed
  busy,   // another transaction holds the row locked: nothing was changed, ask again
};

// What a consumer shows for a job that it leased.
struct Lease {
  JobId job_id = 0;
  ClaimToken token = 0;
};

// Thread: owner only (each thread has its own).
class JobStore {
 public:
  virtual ~JobStore() = default;

  // Reads; locks and changes nothing.
  virtual Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search) = 0;
  Result<ScanReply> scan(std::span<const ScanRange> ranges) { return scan(ranges, LaneSearch{}); }

  // Claims those of `jobs` that are due by the database's clock: live, of that type, fire_at passed, attempts left (a
  // running row whose lease has ended is due again; that expiry joins its errors). Of another type is another job: ids
  // are drawn again after a failover that lost more than a sequence writes ahead. Sets status running, attempts + 1, a
  // fresh token, fire_at = now + ttr. Rows locked by others are skipped. Returns the jobs won, in any order, without
  // biz_type and lease_deadline, with fire_at_before; each once, though `jobs` may name it twice. REQUIRES: ttr.size()
  // == jobs.size(), at most 10,000 jobs.
  virtual Result<std::vector<ClaimedJob>> claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                                                const ClaimTicket& ticket) = 0;

  // The same for the oldest due rows of a lane with fire_at in the span: the backlog, claimed straight from the table.
  // Fewer than `limit` won means that nothing else was due and unlocked.
  virtual Result<std::vector<ClaimedJob>> claim_due(Lane lane, DueSpan span, int limit, Duration ttr,
                                                    const ClaimTicket& ticket) = 0;

  // What a claim with this ticket really won, after its answer was lost; each job once, though `jobs` may name it twice
  // (it was moved, or its shard went and came back). `lane` asks for claim_due's, else `jobs` for
  // claim's.
  virtual Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) = 0;
  virtual Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, Lane lane) = 0;

  // Claims, counts the attempt and finishes as done in one statement: for types whose handler does nothing. Same
  // conditions as claim.
  virtual Result<std::vector<Fired>> fire(std::span<const Candidate> jobs, const std::string& node) = 0;
  virtual Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node) = 0;

  // Writes outcomes, guarded by (job_id, token); one reply per request, in order. Safe to repeat: what was applied is
  // stale then. An answer that takes longer than `within` is not waited for: in doubt, and the session is left.
  virtual Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node,
                                                  Duration within) = 0;
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node) {
    return finish(requests, node, Duration::max());
  }

  // How long each of these leases holds from now on, in order; nullopt: it is over. 0: that cannot be told here, for
  // its shard is moving. Changes nothing. At most 10,000.
  virtual Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease> leases) = 0;

  // Makes dead those of `jobs` that are running, whose lease has ended and whose attempts are spent. Returns how many.
  virtual Result<int> bury(std::span<const JobId> jobs) = 0;

  // Makes dead the oldest rows of a lane, at most `limit`, whose fire_at lies before `before` and longer ago than the
  // registry allows the type (drop_older_than; a type without it loses nothing), by the database's clock: pending,
  // or running with their lease ended. Their last error says "too late". Returns how many; fewer than `limit` means
  // that no other was unlocked.
  virtual Result<int> drop_late(Lane lane, WallTime before, int limit, const std::string& node) = 0;
};

}  // namespace tocsin
