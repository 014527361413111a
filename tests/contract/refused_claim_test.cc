// Claims while the database refuses some rows: how long the search for them lasts, and what is known after an error. On
// PostgreSQL alone.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "postgres/pg_job_store.h"
#include "support/must.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

// Each look at it takes a second.
class SlowClock final : public Clock {
 public:
  MonoTime now() const override { return now_ += std::chrono::seconds(1); }

 private:
  mutable MonoTime now_{};
};

class RefusedClaim : public testing::Test {
 protected:
  static constexpr std::size_t kJobs = 16;

  RefusedClaim() {
    database.add_noop_type();
    for (JobId& id : ids) {
      id = database.number("SELECT tocsin.create_job('noop', 'order', '2026-01-01')");
      jobs.push_back({id, 1, WallTime{}});
    }
    EXPECT_TRUE(store.warm_up());
  }
  // `body`: statements of a trigger before each claim of a row NEW.
  void on_claim(const std::string& body) {
    database.query(
        "CREATE SEQUENCE public.refusals; "
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
        body +
        " RETURN NEW; END $$; "
        "CREATE TRIGGER refuse BEFORE UPDATE ON tocsin.job_live FOR EACH ROW EXECUTE FUNCTION public.refuse()");
  }
  std::string if_job(JobId id, const std::string& statements) const {
    return "IF NEW.job_id = " + std::to_string(id) + " THEN " + statements + " END IF;";
  }
  Result<Claims> claim(std::span<const Candidate> some) {
    const std::vector<Duration> ttr(some.size(), std::chrono::hours(1));
    return store.claim(some, ttr, {++ticket.seed, ticket.node});
  }

  TestDatabase database{4};
  Session session{{database.url(), "claims"}};
  const SlowClock clock;
  PgJobStore store{session, clock};
  std::array<JobId, kJobs> ids{};
  std::vector<Candidate> jobs;
  ClaimTicket ticket{0, "node-a"};
};

TEST_F(RefusedClaim, TheSearchForTheRowEndsWithTheTimeOfOneCall) {
  on_claim(if_job(ids.back(), "RAISE EXCEPTION 'it is refused' USING ERRCODE = '23514';"));
  store.answer_within(std::chrono::seconds(3));
  std::size_t won = 0, calls = 0;
  std::vector<JobId> refused;
  for (std::size_t left = kJobs; left > 0 && calls < kJobs; ++calls) {
    const Claims claims = must(claim(std::span(jobs).last(left)));
    if (calls == 0) {
      EXPECT_GT(claims.untried, 0U);
    }
    won += claims.won.size();
    for (const auto& each : claims.refused) refused.push_back(each.job_id);
    left = claims.untried;
  }
  EXPECT_EQ(won, kJobs - 1);
  EXPECT_EQ(refused, std::vector<JobId>{ids.back()});
}

TEST_F(RefusedClaim, AnErrorBehindAPartThatWonIsInDoubt) {
  on_claim(if_job(ids.front(), "PERFORM nextval('public.refusals'); RAISE EXCEPTION 'no' USING ERRCODE = '23514';") +
           if_job(ids.back(),
                  "IF (SELECT is_called FROM public.refusals) THEN RAISE EXCEPTION 'away' USING ERRCODE = "
                  "'57014'; END IF;"));
  const auto claims = claim(jobs);
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().code, ErrorCode::in_doubt);
  const auto held =
      static_cast<std::size_t>(database.number("SELECT count(*) FROM tocsin.job WHERE status = 'running'"));
  EXPECT_GT(held, 0U);
  EXPECT_EQ(must(store.claimed_with(ticket, ids)).size(), held);
}

// One lane whose rows are refused beside another that is well.
TEST_F(RefusedClaim, ALaneIsNotClaimedInSmallPartsBecauseOfAnother) {
  const Lane bad{shard_of(ids[0]), 1}, good{static_cast<Shard>((bad.shard + 1) % 4), 1};
  database.query("SELECT tocsin.create_job('noop', 'o' || i, '2026-01-01') FROM generate_series(1, 40) i");
  on_claim("IF NEW.shard = " + std::to_string(bad.shard) +
           " THEN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END IF;");
  const auto claim_due = [&](Lane lane) {
    return store.claim_due(lane, {}, 100, std::chrono::hours(1), {++ticket.seed, ticket.node});
  };
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(claim_due(bad));
  const Claims claims = must(claim_due(good));
  EXPECT_GT(claims.won.size(), 2U);
  EXPECT_FALSE(claims.is_cut_short);
}

}  // namespace
}  // namespace tocsin
