// OutboxStore and IntakeStore, with the SQL verbs for entries: on PostgreSQL and on the database in memory.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>

#include "postgres/pg_client_store.h"
#include "postgres/pg_outbox.h"
#include "support/fake_outbox.h"
#include "support/manual_clock.h"
#include "support/no_faults.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr int kTestShards = 4;

// Two databases: all shards live in the second, and callers create in the first.
class OutboxFixture {
 public:
  virtual ~OutboxFixture() = default;
  virtual OutboxStore& outbox() = 0;
  virtual IntakeStore& intake() = 0;
  // The verbs of SQL in the first database. False: it refuses with TC001, as only the second one knows.
  virtual JobId create(const std::string& biz_id, WallTime action_time, const std::optional<std::string>& key) = 0;
  bool cancel(JobId job) {
    const std::string answer = answer_to_cancel(job);
    EXPECT_TRUE(answer == "cancelled" || answer == "TC001") << answer;
    return answer == "cancelled";
  }
  virtual std::string answer_to_cancel(JobId job) = 0;
  virtual bool reschedule(JobId job, WallTime action_time) = 0;
  virtual void age_entries(Duration by) = 0;  // they were created and claimed earlier by that
  Duration ahead{0};                          // of the clock by which they are changed
  // The first database loses what was done to its entries since the first call.
  virtual void stop_standby() = 0;
  virtual void fail_over() = 0;
  virtual std::string error_of(JobId job) = 0;  // of an entry
  // In the second database.
  virtual std::optional<Job> job(JobId job) = 0;
  virtual void reschedule_there(JobId job, WallTime action_time) = 0;
  virtual void forget(JobId job) = 0;  // it has run, and retention has deleted its record
  virtual WallTime now() = 0;
};

class PostgresOutbox final : public OutboxFixture {
 public:
  PostgresOutbox() {
    for (TestDatabase* each : {&a_, &b_}) each->add_noop_type();
    a_.query("SELECT tocsin.set_shards_here('{}')");
  }
  OutboxStore& outbox() override { return outbox_; }
  IntakeStore& intake() override { return intake_; }
  JobId create(const std::string& biz_id, WallTime action_time, const std::optional<std::string>& key) override {
    return a_.number("SELECT tocsin.create_job('noop', '" + biz_id + "', " + time(action_time) + ", NULL, " +
                     (key ? "'" + *key + "'" : "NULL") + ")");
  }
  std::string answer_to_cancel(JobId job) override { return answer("cancel_job(" + std::to_string(job) + ")", job); }
  bool reschedule(JobId job, WallTime action_time) override {
    const std::string told = answer("reschedule_job(" + std::to_string(job) + ", " + time(action_time) + ")", job);
    EXPECT_TRUE(told == "rescheduled" || told == "TC001") << told;
    return told == "rescheduled";
  }
  void age_entries(Duration by) override {
    const std::string time = "interval '1 microsecond' * " + std::to_string(by.count());
    a_.query("UPDATE tocsin.outbox SET gmt_create = gmt_create - " + time + ", claimed_at = claimed_at - " + time);
  }
  void stop_standby() override { a_.query("CREATE TABLE public.standby AS TABLE tocsin.outbox"); }
  void fail_over() override {
    a_.query("DELETE FROM tocsin.outbox; INSERT INTO tocsin.outbox TABLE public.standby; DROP TABLE public.standby");
  }
  std::string error_of(JobId job) override {
    const auto rows = a_.query("SELECT error FROM tocsin.outbox WHERE job_id = " + std::to_string(job));
    return rows.empty() ? "" : rows[0][0].c_str();
  }
  std::optional<Job> job(JobId job) override {
    return PgClientStore(at_b_, kTestShards).find(std::vector<JobId>{job})->front();
  }
  void reschedule_there(JobId job, WallTime action_time) override {
    b_.query("SELECT tocsin.reschedule_job(" + std::to_string(job) + ", " + time(action_time) + ")");
  }
  void forget(JobId job) override {
    b_.query("DELETE FROM tocsin.job_live WHERE job_id = " + std::to_string(job));
    b_.query("DELETE FROM tocsin.job_history WHERE job_id = " + std::to_string(job));
  }
  WallTime now() override {
    return WallTime(Duration(b_.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")));
  }

 private:
  static std::string time(WallTime time) {
    return "timestamptz 'epoch' + interval '1 microsecond' * " + std::to_string(time.time_since_epoch().count());
  }
  std::string answer(const std::string& call, JobId job) {
    try {
      const std::string result = a_.query("SELECT tocsin." + call)[0][0].c_str();
      if (ahead != Duration(0))
        a_.query("UPDATE tocsin.outbox SET changed_at = changed_at + interval '1 microsecond' * " +
                 std::to_string(ahead.count()) + " WHERE job_id = " + std::to_string(job));
      return result;
    } catch (const pqxx::sql_error& error) {
      return error.sqlstate();
    }
  }

  TestDatabase a_{kTestShards}, b_{kTestShards};
  Session at_a_{SessionConfig{.url = a_.url()}}, at_b_{SessionConfig{.url = b_.url()}};
  PgOutbox outbox_{at_a_};
  PgIntake intake_{at_b_};
};

class FakeOutboxFixture final : public OutboxFixture {
 public:
  OutboxStore& outbox() override { return at_a_->outbox(); }
  IntakeStore& intake() override { return at_b_->intake(); }
  JobId create(const std::string& biz_id, WallTime action_time, const std::optional<std::string>& key) override {
    const WallTime created = now();
    return a_.create(biz_id, action_time - created, key, created);
  }
  std::string answer_to_cancel(JobId job) override {
    return a_.cancel(job, now() + ahead) ? "cancelled" : a_.is_refused(job) ? "not found" : "TC001";
  }
  bool reschedule(JobId job, WallTime action_time) override { return a_.reschedule(job, action_time, now() + ahead); }
  void age_entries(Duration by) override { now_ += by; }
  void stop_standby() override { a_.stop_standby(); }
  void fail_over() override { static_cast<void>(a_.fail_over()); }
  std::string error_of(JobId job) override { return a_.error_of(job); }
  std::optional<Job> job(JobId job) override {
    const auto copy = there_.copy_of(job);
    return copy ? std::optional(copy->row.job) : std::nullopt;
  }
  void reschedule_there(JobId job, WallTime action_time) override {
    static_cast<void>(there_.reschedule(job, {action_time, {}}, now()));
  }
  void forget(JobId job) override { b_.drop(job); }
  WallTime now() override { return now_ += 2s; }  // a relay claims an entry again after a second

 private:
  WallTime now_{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
  NoFaults faults_;
  ManualClock clock_;
  FakeDatabase here_{[this] { return now(); }, kTestShards}, there_{[this] { return now(); }, kTestShards};
  FakeOutbox a_{0, here_, {}}, b_{1, there_, {0, 1, 2, 3}};
  std::unique_ptr<RelaySession> at_a_ = fake_relay_end(a_, clock_, faults_);
  std::unique_ptr<RelaySession> at_b_ = fake_relay_end(b_, clock_, faults_);
};

struct OutboxKind {
  std::string name;
  std::unique_ptr<OutboxFixture> (*make)();
};
std::ostream& operator<<(std::ostream& out, const OutboxKind& kind) { return out << kind.name; }

class OutboxContract : public testing::TestWithParam<OutboxKind> {
 protected:
  JobId create(const std::optional<std::string>& key = {}) { return databases->create("o", at, key); }
  // Another relay each time: an own claim holds for a second.
  std::vector<OutboxEntry> claim() {
    static std::int64_t relay = 0;
    return *databases->outbox().claim(shards, {}, ++relay, 10);
  }
  TakenOver take_over(const std::vector<OutboxEntry>& entries) {
    const auto taken = databases->intake().take_over(0, databases->now() + IntakeStore::kHandOver, entries);
    if (taken && !taken->empty()) return taken->front();
    ADD_FAILURE() << (taken ? "no entry was relayed" : taken.error().message);
    return {};
  }
  void settle(const TakenOver& taken) { EXPECT_TRUE(databases->outbox().settle(std::vector{taken})); }
  bool is_gone(JobId job) { return !databases->outbox().gone(std::vector{job})->empty(); }
  // Makes the entry a job, and gives the entry back as it was before its claim. Returns what the relay was answered.
  TakenOver relay_and_lose_the_claim() {
    databases->stop_standby();
    const TakenOver taken = take_over(claim());
    databases->fail_over();
    return taken;
  }

  const std::unique_ptr<OutboxFixture> databases = GetParam().make();
  const std::vector<Shard> shards{0, 1, 2, 3};
  const WallTime at = std::chrono::sys_days(std::chrono::year(2040) / 1 / 1), later = at + 24h;
};

// Another job may have the key, and only its database knows: no answer of the outbox would be true for sure.
TEST_P(OutboxContract, AnEntryWithAKeyIsChangedOnlyWhereItsShardLives) {
  const JobId keyed = create("k");
  EXPECT_FALSE(databases->cancel(keyed));
  EXPECT_FALSE(databases->reschedule(keyed, later));
  const JobId first = take_over(claim()).job_id;
  EXPECT_EQ(first, keyed);
  settle({keyed, 1, {}, {}, "", {}});
  const JobId again = create("k");
  EXPECT_NE(again, keyed) << "the outbox knows the key no more";
  EXPECT_FALSE(databases->cancel(again));
  EXPECT_FALSE(databases->reschedule(again, later));
  EXPECT_EQ(take_over(claim()).existing, keyed);
  EXPECT_EQ(databases->job(keyed)->status, JobStatus::pending);
  EXPECT_EQ(databases->job(keyed)->action_time, at);
}

TEST_P(OutboxContract, AnEntryWithoutAKeyIsChangedUntilItIsClaimed) {
  const JobId moved = create(), cancelled = create();
  EXPECT_TRUE(databases->reschedule(moved, later));
  EXPECT_TRUE(databases->cancel(cancelled));
  const auto entries = claim();
  EXPECT_FALSE(databases->cancel(moved));
  EXPECT_FALSE(databases->reschedule(moved, at));
  const auto taken = databases->intake().take_over(0, databases->now() + IntakeStore::kHandOver, entries);
  ASSERT_TRUE(taken);
  ASSERT_TRUE(databases->outbox().settle(*taken));
  EXPECT_TRUE(is_gone(moved) && is_gone(cancelled));
  EXPECT_EQ(databases->job(moved)->action_time, later);
  EXPECT_EQ(databases->job(cancelled)->status, JobStatus::cancelled);
}

// One that is due soon does not wait for those that cannot be taken over.
TEST_P(OutboxContract, EntriesAreClaimedInTheOrderOfTheirTimesThoseTriedBeforeLast) {
  const auto jobs_of = [](const std::vector<OutboxEntry>& entries) {
    std::vector<JobId> jobs;
    for (const OutboxEntry& each : entries) jobs.push_back(each.job_id);
    return jobs;
  };
  const auto create_at = [this](int hour) { return databases->create("o" + std::to_string(hour), at + hour * 1h, {}); };
  const JobId tried_later = create_at(2), tried = create_at(1);
  EXPECT_EQ(jobs_of(claim()), (std::vector{tried, tried_later}));
  databases->age_entries(1h);
  std::map<int, JobId> by_time;
  for (int i = 0; i < 8; ++i) {
    const int hour = 3 + (i * 5) % 8;
    by_time[hour] = create_at(hour);
  }
  std::vector<JobId> wanted;
  for (const auto& [hour, job] : by_time) wanted.push_back(job);
  wanted.insert(wanted.end(), {tried, tried_later});
  EXPECT_EQ(jobs_of(claim()), wanted);
}

// The relay that claimed it may have died.
TEST_P(OutboxContract, TheOwnerOfTheShardClaimsAnEntryAgainSoonerThanOthers) {
  const auto claim_as_other = [&](std::int64_t relay) {
    return databases->outbox().claim({}, shards, relay, 10)->size();
  };
  create();
  EXPECT_EQ(claim_as_other(1000), 0U) << "it is new";
  databases->age_entries(20s);
  ASSERT_EQ(claim().size(), 1U);
  EXPECT_EQ(claim().size(), 0U);
  databases->age_entries(4s);
  EXPECT_EQ(claim_as_other(1001), 0U);
  EXPECT_EQ(claim().size(), 1U);
  databases->age_entries(11s);
  EXPECT_EQ(claim_as_other(1002), 1U);
}

TEST_P(OutboxContract, AChangeAfterALostClaimReachesTheJob) {
  const JobId job = create();
  relay_and_lose_the_claim();
  EXPECT_TRUE(databases->reschedule(job, later));
  EXPECT_EQ(take_over(claim()).error, "");
  EXPECT_EQ(databases->job(job)->action_time, later);
}

TEST_P(OutboxContract, ACancelAfterALostClaimReachesTheJob) {
  const JobId job = create();
  relay_and_lose_the_claim();
  EXPECT_TRUE(databases->cancel(job));
  const auto entries = claim();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(take_over(entries).error, "") << "also if its answer was lost";
  EXPECT_EQ(databases->job(job)->status, JobStatus::cancelled);
  settle(take_over(entries));
  EXPECT_TRUE(is_gone(job));
}

TEST_P(OutboxContract, AChangeIsAppliedOnce) {
  const JobId job = create();
  EXPECT_TRUE(databases->reschedule(job, later));
  const auto entries = claim();
  take_over(entries);
  databases->reschedule_there(job, at);
  EXPECT_EQ(take_over(entries).error, "");
  EXPECT_EQ(databases->job(job)->action_time, at) << "the later word of the two";
}

TEST_P(OutboxContract, AChangeThatComesTooLateStaysVisible) {
  const JobId job = create();
  relay_and_lose_the_claim();
  databases->forget(job);
  EXPECT_TRUE(databases->cancel(job));
  const auto entries = claim();
  for (int i = 0; i < 2; ++i) EXPECT_NE(take_over(entries).error, "") << "also if its answer was lost";
  settle(take_over(entries));
  EXPECT_FALSE(is_gone(job));
  EXPECT_NE(databases->error_of(job).find("too late"), std::string::npos);
  EXPECT_FALSE(databases->cancel(job)) << "its database knows";
}

TEST_P(OutboxContract, AnEntryChangedSinceItWasRelayedIsNotSettled) {
  const JobId job = create();
  const TakenOver before = relay_and_lose_the_claim();
  EXPECT_TRUE(databases->cancel(job));
  const auto entries = claim();
  settle(before);
  EXPECT_FALSE(is_gone(job)) << "its relay has not been answered yet";
  settle(take_over(entries));
  EXPECT_TRUE(is_gone(job));
}

// Its first change, which the failover lost as well, was made by a clock that was ahead.
TEST_P(OutboxContract, AChangeReachesTheJobThoughTheClockWentBack) {
  const JobId kept = create(), lost = create();
  databases->ahead = 1h;
  EXPECT_TRUE(databases->reschedule(kept, later));
  databases->stop_standby();
  EXPECT_TRUE(databases->reschedule(lost, later));
  take_over(claim());
  databases->fail_over();
  databases->ahead = 0s;
  EXPECT_TRUE(databases->cancel(kept) && databases->cancel(lost));
  EXPECT_EQ(take_over(claim()).error, "");
  EXPECT_EQ(databases->job(kept)->status, JobStatus::cancelled);
  EXPECT_EQ(databases->job(lost)->status, JobStatus::cancelled);
}

TEST_P(OutboxContract, AnOlderChangeThatArrivesLaterIsRefused) {
  const JobId job = create();
  EXPECT_TRUE(databases->reschedule(job, later));
  databases->stop_standby();
  const WallTime read_at = databases->now();
  const auto old = claim();
  databases->fail_over();
  EXPECT_TRUE(databases->reschedule(job, later + 24h));
  take_over(claim());
  const auto refused = databases->intake().take_over(0, read_at + IntakeStore::kHandOver, old);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict) << refused.error().message;
  EXPECT_EQ(databases->job(job)->action_time, later + 24h);
}

TEST_P(OutboxContract, ARefusedEntryIsNotFoundThoughItWasChanged) {
  const JobId job = create();
  EXPECT_TRUE(databases->reschedule(job, later));
  auto entries = claim();
  take_over(entries);
  entries[0].gmt_create += 1s;
  const TakenOver taken = take_over(entries);
  EXPECT_EQ(taken.error, "its job_id is that of another job");
  settle(taken);
  EXPECT_EQ(databases->answer_to_cancel(job), "not found") << "not a hint to cancel the other job";
}

INSTANTIATE_TEST_SUITE_P(
    Stores, OutboxContract,
    testing::Values(OutboxKind{"Fake", [] { return std::unique_ptr<OutboxFixture>(new FakeOutboxFixture); }},
                    OutboxKind{"Postgres", [] { return std::unique_ptr<OutboxFixture>(new PostgresOutbox); }}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace tocsin
