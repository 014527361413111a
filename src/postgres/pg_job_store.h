// PgJobStore: the statements by which an engine scans, claims, fires (claims and finishes at once) and finishes the
// jobs of one database. Implements JobStore, which says what each call does (ports/job_store.h). The scanner, each
// claimer, the finisher and the lease reaper have one store each, with a session of its own. A call blocks until the
// database answers or a time limit ends it. Errors: unavailable, in_doubt (a write without an answer may have
// happened), conflict, moved, invalid. Thread: owner only (its stage's).
#pragma once

#include <optional>

#include "base/part_size.h"
#include "ports/job_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgJobStore : public JobStore {
 public:
  // REQUIRES: both outlive the store. `clock`: the local clock; a ScanReply has the local times at which its statement
  // was sent and answered.
  PgJobStore(Session& session, const Clock& clock) : session_(session), clock_(clock) {}

  void answer_within(Duration limit) override {
    limit_ = limit;
    session_.answer_within(limit);
  }
  using JobStore::scan;
  Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark mark) override;
  Result<Claims> claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                       const ClaimTicket& ticket) override;
  Result<Claims> claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket) override;
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) override;
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, Lane lane) override;
  Result<std::vector<Fired>> fire(std::span<const Candidate> jobs, const std::string& node) override;
  Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node) override;
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node) override;
  Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease> leases) override;
  Result<int> mark_dead(std::span<const JobId> jobs) override;
  Result<int> drop_too_late(Lane lane, WallTime before, int limit, int passed, const std::string& node) override;

  // Connects, and executes scan, claim, fire and finish without any job, so that the first job waits neither for the
  // connection nor for the plans of these statements. Called before the stages start. Error: of the first that failed.
  Status warm_up();

 private:
  // claim() and claim_due() in one statement each, which fails as a whole.
  Result<std::vector<ClaimedJob>> claim_together(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                                                 const ClaimTicket& ticket);
  Result<std::vector<ClaimedJob>> claim_first(Lane lane, DueSpan span, int limit, Duration ttr,
                                              const ClaimTicket& ticket);
  // Fires by a statement of src/postgres/sql: `fire` waits up to 20 ms for a locked row and then fires no job (Error
  // conflict); `fire_skipping` leaves out the jobs whose rows are locked.
  Result<std::vector<Fired>> fire_by(const char* statement_name, std::span<const Candidate> jobs,
                                     const std::string& node);

  Session& session_;
  const Clock& clock_;
  // Until this time fire() skips locked rows at once. It is set to 5 s after fire() waited for a lock in vain: the lock
  // may be held for long, and each batch would wait.
  MonoTime skips_locked_until_{};
  Duration limit_ = Duration::max();  // of answer_within()
  PartSize claim_size_;               // of claim()
  PartSize due_size_;                 // of claim_due(), in the lane `due_lane_`
  std::optional<Lane> due_lane_;
};

}  // namespace tocsin
