// Where much is read, it is read in slices: no scan takes long, and no lane waits for longer.
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

}  // namespace
}  // namespace tocsin
