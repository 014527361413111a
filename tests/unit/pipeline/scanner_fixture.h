// A scanner alone, on a small table that answers every range truthfully.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "pipeline/scanner.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {

class ScannerTest : public StageFixture {
 protected:
  struct Row {
    Candidate candidate;
    bool is_exhausted = false;
  };

  void SetUp() override {
    config.handover_time = 0s;
    store.on_scan = [this](std::span<const ScanRange> ranges, const LaneSearch& search) {
      return answer(ranges, search);
    };
  }

  Result<ScanReply> answer(std::span<const ScanRange> ranges, const LaneSearch& search) {
    asked.assign(ranges.begin(), ranges.end());
    searched = search;
    asked_at = db_now();
    if (keeps_awake) renew_wakers();
    ScanReply reply;
    reply.asked = now;
    reply.db_now = db_now();
    reply.began = reply.db_now;
    reply.oldest_writer = oldest_writer;
    if (store.last_mark == WriterMark::set) reply.next_writer = next_writer;
    reply.connection = connection;
    now += round_trip;
    reply.answered = now;
    if (fails) return unavailable();
    std::ranges::sort(table, {}, [](const Row& row) { return std::pair(row.candidate.fire_at, row.candidate.job_id); });
    for (const ScanRange& range : ranges) {
      auto& rows = reply.rows.emplace_back();
      for (const auto& [job, is_exhausted] : table) {
        const bool is_in_range = job.lane() == range.lane && job.fire_at < range.before &&
                                 std::pair(job.fire_at, job.job_id) > std::pair(range.after, range.after_id);
        if (is_in_range && std::ssize(rows) < range.limit) rows.push_back({job, is_exhausted});
      }
    }
    std::set<Lane> lanes;
    for (const auto& [job, is_exhausted] : table)
      if (job.fire_at < search.before && is_searched(job.lane())) lanes.insert(job.lane());
    reply.lanes.assign(lanes.begin(), lanes.end());
    if (search.most_bytes < index_bytes) {
      std::set<Lane> met;
      for (const Row& row : table)
        if (is_searched(row.candidate.lane())) met.insert(row.candidate.lane());
      reply.walked = met.size();
    }
    return reply;
  }
  // The last statement looked for rows of this lane without a cursor.
  bool is_searched(Lane lane) const {
    return std::ranges::any_of(searched.walks, [&](const LaneSearch::Walk& walk) {
      return walk.shard == lane.shard && walk.first <= lane.type_id && lane.type_id <= walk.last;
    });
  }

  // A scanner that knows the time and the types, one step before its first scan.
  Scanner& scanner() {
    if (!scanner_) {
      if (shared().catalog.get()->types.empty()) set_types({biz_type(1)});
      know_time();
      scanner_.emplace(shared(), store);
    }
    return *scanner_;
  }
  JobId insert(WallTime fire_at, TypeId type = 1, Shard shard = 0, bool is_exhausted = false) {
    const JobId id = make_job_id(++last_sequence_, shard);
    table.push_back({{id, type, fire_at}, is_exhausted});
    return id;
  }
  // Steps once, at the instant the scanner asked for if that is later.
  void scan() {
    now = std::max(now, next_);
    next_ = scanner().step(now);
  }
  void scan_until_it_rests() {
    do scan();
    while (next_ <= now);
  }
  // Steps whenever the scanner asks for it, until the database's clock shows that time.
  void scan_until(WallTime time) {
    while (next_ - now < time - db_now()) scan();
    now += std::max(Duration(0), time - db_now());
  }
  std::vector<JobId> found() {
    std::vector<JobId> ids;
    for (const Candidate& job : shared().candidates.pop_some(1'000'000)) ids.push_back(job.job_id);
    std::ranges::sort(ids);
    return ids;
  }
  // Where the claims of the lane's backlog begin; max(): it is no backlog.
  WallTime backlog_begin(Lane lane, Pace pace = Pace::fresh) {
    auto backlog = shared().due.next_lane(lane.type_id, pace);
    if (!backlog) return WallTime::max();
    shared().due.put_back(*backlog);
    return backlog->span.from;
  }
  std::vector<ScanRange> asked_overdue() const {
    std::vector<ScanRange> out;
    std::ranges::copy_if(asked, std::back_inserter(out),
                         [&](const ScanRange& range) { return range.after <= asked_at - config.late_commit_margin; });
    return out;
  }
  std::vector<ScanRange> asked_window() const {
    std::vector<ScanRange> out;
    std::ranges::copy_if(asked, std::back_inserter(out),
                         [&](const ScanRange& range) { return range.before > asked_at; });
    return out;
  }

  std::uint64_t connection = 0;
  std::int64_t oldest_writer = 0, next_writer = std::numeric_limits<std::int64_t>::max();
  std::vector<Row> table;
  std::vector<ScanRange> asked;
  LaneSearch searched;
  bool keeps_awake = false;  // every scan finds a row of each lane, which it does not take: its last attempt runs
  WallTime asked_at{};
  Duration round_trip = 1ms;
  std::int64_t index_bytes = 1;
  bool fails = false;

 private:
  static constexpr std::int64_t kWakers = 1'000'000;  // their sequence numbers begin there
  void renew_wakers() {
    std::erase_if(table, [](const Row& row) { return row.candidate.job_id >= make_job_id(kWakers, 0); });
    for (const auto& type : shared().catalog.get()->types) {
      for (const Shard shard : *shared().shards.get()) {
        const JobId id = make_job_id(kWakers + type->type_id, shard);
        table.push_back({{id, type->type_id, asked_at + config.lookahead - 10ms}, true});
      }
    }
  }

  std::optional<Scanner> scanner_;
  MonoTime next_{};
  std::int64_t last_sequence_ = 0;
};

}  // namespace tocsin
