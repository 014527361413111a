// JobStore on PostgreSQL: the engine's statements (scan, claim, fire, finish). Each stage that calls it has one, with a
// session of its own. Thread: owner only.
#pragma once

#include "ports/job_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgJobStore : public JobStore {
 public:
  // Both must outlive the store. `clock`: the local one, for ScanReply.
  PgJobStore(Session& session, const Clock& clock) : session_(session), clock_(clock) {}

  void answer_within(Duration limit) override { session_.answer_within(limit); }
  using JobStore::scan;
  Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search) override;
  Result<std::vector<ClaimedJob>> claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                                        const ClaimTicket& ticket) override;
  Result<std::vector<ClaimedJob>> claim_due(Lane lane, DueSpan span, int limit, Duration ttr,
                                            const ClaimTicket& ticket) override;
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) override;
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket& ticket, Lane lane) override;
  Result<std::vector<Fired>> fire(std::span<const Candidate> jobs, const std::string& node) override;
  Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node) override;
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest> requests, const std::string& node) override;
  Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease> leases) override;
  Result<int> mark_dead(std::span<const JobId> jobs) override;
  Result<int> drop_late(Lane lane, WallTime before, int limit, const std::string& node) override;

  // Connects, and plans the statements over all shards, so that the first job does not wait for that.
  Status warm_up();

 private:
  Result<std::vector<Fired>> fire_by(const char* verb, std::span<const Candidate> jobs, const std::string& node);

  Session& session_;
  const Clock& clock_;
  MonoTime skips_locked_until_{};  // after fire() has met a locked row
};

}  // namespace tocsin
