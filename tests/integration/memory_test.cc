// Memory is bounded whatever the backlog.
#include <fstream>

#include "integration/live_node.h"

namespace tocsin {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kJobs = 20'000;
constexpr std::int64_t kMostMegabytes = 1500;  // shadow memory and quarantine are not the node's doing
#else
constexpr int kJobs = 200'000;
constexpr std::int64_t kMostMegabytes = 150;
#endif

// The most memory that a process has ever held.
std::int64_t peak_megabytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
  }
  return -1;
}

class Memory : public LiveNode {
 protected:
  void insert(int n, const std::string& fire_at) {
    database.query(
        "WITH i AS (INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, "
        "shard, max_attempts, biz_id,"
        " attribute) SELECT nextval('tocsin.job_seq') * 1024 + n % 8, " +
        fire_at + ", " + fire_at +
        ", now(), now(), 1, n % 8, 16, 'k-' || n,"
        " jsonb_build_object('note', repeat('x', 150)) FROM generate_series(1, " +
        std::to_string(n) +
        ") n RETURNING 1)"
        " INSERT INTO tocsin.job_count_delta SELECT 1, 0, count(*) FROM i");
  }
};

TEST_F(Memory, StaysBoundedUnderALongBacklog) {
  put_noop();
  ASSERT_EQ(rest().post("/v1/types/noop/pause").status, 200);
  insert(kJobs, "now() - n * interval '1 millisecond'");
  ASSERT_EQ(rest().post("/v1/types/noop/resume").status, 200);
  EXPECT_TRUE(eventually([&] { return database.number("SELECT count(*) FROM tocsin.job_live") == 0; }));
  EXPECT_EQ(count("done"), kJobs);
  const std::int64_t peak = peak_megabytes(node().process().pid());
  RecordProperty("peak_megabytes", std::to_string(peak));
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, kMostMegabytes);
}

TEST_F(Memory, StaysBoundedWhenMoreIsDueSoonThanFits) {
  start({"--queue-capacity", "1000"});
  put_noop();
  put_noop("other");
  insert(20'000, "now() + interval '2 seconds' + n * interval '50 microseconds'");
  const std::string other = create("other", 2000);
  EXPECT_TRUE(becomes(other, "done"));
  EXPECT_TRUE(eventually([&] { return database.number("SELECT count(*) FROM tocsin.job_live") == 0; }));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at < action_time OR status <> 'done'"), 0);
}

}  // namespace
}  // namespace tocsin
