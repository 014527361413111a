// How scans are spread over time. Where much is read, it is read in slices: no scan takes long, and no lane waits for
// longer. Where nobody else works and nothing is found, scans are rare.
#include <map>
#include <set>

#include "unit/pipeline/scanner_bench.h"

namespace tocsin {
namespace {

TEST_F(ScannerTest, ManyRowsAreReadInSlicesAndNoLaneLaterThanAnInterval) {
  config.many_rows = 16;
  shards = {0, 1, 2, 3, 4, 5, 6, 7};
  std::map<Shard, MonoTime> read;
  std::map<std::size_t, int> scans_of_so_many_lanes;
  std::size_t inserted = 0, seen = 0;
  for (int i = 0; i < 200; ++i) {
    const bool is_busy = i >= 20 && i < 120;
    for (const Shard shard : shards)
      if (is_busy) insert(db_now() + config.lookahead + 500ms, 1, shard);
    inserted += is_busy ? shards.size() : 0;
    std::erase_if(table, [&](const Row& row) {
      const bool has_fired = row.candidate.fire_at < db_now();
      if (has_fired) shared().known.remove(row.candidate.job_id);
      return has_fired;
    });
    scan();
    seen += found().size();
    std::set<Shard> lanes;
    for (const ScanRange& range : asked) lanes.insert(range.lane.shard);
    ++scans_of_so_many_lanes[lanes.size()];
    for (const Shard shard : lanes) {
      if (read.contains(shard)) {
        EXPECT_LE(now - read[shard], config.scan_interval + 5 * round_trip) << shard << ", " << i;
      }
      read[shard] = now;
    }
  }
  EXPECT_EQ(read.size(), shards.size());
  EXPECT_GE(scans_of_so_many_lanes[2], 90) << "a quarter of eight";
  EXPECT_GE(scans_of_so_many_lanes[8], 80);
  EXPECT_EQ(scans_of_so_many_lanes.size(), 2U);
  EXPECT_EQ(seen, inserted);
}

TEST_F(ScannerTest, ALoneNodeThatHearsNotificationsScansHalfAsOftenWhileItFindsNothing) {
  shards.clear();
  for (Shard shard = 0; shard < 20; ++shard) shards.push_back(shard);
  config.sweep_interval = 10s;
  scan_until_it_rests();
  const auto next_scan_comes_after = [&] {
    scan();  // as the state was before
    const MonoTime last = now;
    scan();
    return now - last - round_trip;
  };
  EXPECT_EQ(next_scan_comes_after(), 1s);
  shared().is_alone = true;
  EXPECT_EQ(next_scan_comes_after(), 1s) << "it may miss a notification";
  shared().is_listening = true;
  EXPECT_EQ(next_scan_comes_after(), 2s);
  std::map<Shard, int> swept;
  for (int i = 0; i < 5; ++i) {
    scan();
    for (const ScanRange& range : asked_overdue())
      if (range.after == WallTime::min()) ++swept[range.lane.shard];
  }
  EXPECT_EQ(swept.size(), 20U) << "sweeps come as often as ever";
  const JobId job = insert(db_now() + 5s);
  EXPECT_EQ(next_scan_comes_after(), 1s);
  table.clear();
  EXPECT_EQ(next_scan_comes_after(), 1s) << "it still has a job in memory";
  shared().known.remove(job);
  EXPECT_EQ(found(), std::vector<JobId>{job});
  EXPECT_EQ(next_scan_comes_after(), 2s);
  shared().is_alone = false;
  EXPECT_EQ(next_scan_comes_after(), 1s);
}

}  // namespace
}  // namespace tocsin
