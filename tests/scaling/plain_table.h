// Ten million jobs in memory, eight bytes and a bit each: what a simulated cluster reads and fires.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.h"
#include "ports/job_store.h"
#include "simulation/scheduler.h"

namespace tocsin {

// What reaches the databases, from all nodes together.
struct Statements {
  std::int64_t scans = 0, ranges = 0, fires = 0, fired = 0;
  std::int64_t beats = 0, member_rows = 0, map_writes = 0;
};

// Thread: owner only.
class PlainTable {
 public:
  using OnFired = std::function<void(Shard shard, Duration lateness)>;

  // `jobs` of one type, due at random within `span`, spread evenly over the shards.
  PlainTable(int shards, std::int64_t jobs, Duration span, TypeId type, std::uint64_t seed);

  std::vector<ScanReply::Row> read(const ScanRange& range) const;
  // False: it is not due, or has fired.
  TypeId type() const { return type_; }
  bool fire(JobId job, WallTime now, Fired& fired);
  std::int64_t left() const { return left_; }

 private:
  struct Jobs {
    std::vector<std::int64_t> due;  // microseconds, in order; number i has the id make_job_id(i, shard)
    std::vector<bool> has_fired;
  };
  const TypeId type_;
  std::vector<Jobs> shards_;
  std::int64_t left_ = 0;
};

// One session. Every call takes a round trip, and some time for each row.
class PlainStore final : public JobStore {
 public:
  PlainStore(PlainTable& table, Scheduler& scheduler, Statements& statements, PlainTable::OnFired on_fired)
      : table_(table), scheduler_(scheduler), statements_(statements), on_fired_(std::move(on_fired)) {}

  using JobStore::scan;
  Result<ScanReply> scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark) override;
  Result<std::vector<Fired>> fire(std::span<const Candidate> jobs, const std::string& node) override;
  Result<std::vector<Fired>> fire_due(Lane lane, DueSpan span, int limit, const std::string& node) override;

  // The one type of these clusters is instant: nothing else is asked.
  Result<Claims> claim(std::span<const Candidate>, std::span<const Duration>, const ClaimTicket&) override;
  Result<Claims> claim_due(Lane, DueSpan, int, Duration, const ClaimTicket&) override;
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket&, std::span<const JobId>) override;
  Result<std::vector<ClaimedJob>> claimed_with(const ClaimTicket&, Lane) override;
  Result<std::vector<FinishReply>> finish(std::span<const FinishRequest>, const std::string&) override;
  Result<std::vector<std::optional<Duration>>> leases_left(std::span<const Lease>) override;
  Result<int> mark_dead(std::span<const JobId>) override;
  Result<int> drop_too_late(Lane, WallTime, int, int, const std::string&) override;

 private:
  WallTime db_now() const { return WallTime(scheduler_.now().time_since_epoch()); }
  void work(std::size_t rows) { scheduler_.sleep(std::chrono::microseconds(200 + 10 * rows)); }

  PlainTable& table_;
  Scheduler& scheduler_;
  Statements& statements_;
  const PlainTable::OnFired on_fired_;
};

}  // namespace tocsin
