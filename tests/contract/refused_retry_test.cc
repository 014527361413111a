// Retries of dead jobs that the database refuses, or whose tables are locked. On PostgreSQL alone.
#include "contract/dead_jobs.h"
#include "ports/row_refusal.h"
#include "postgres/pg_type_store.h"

namespace tocsin {
namespace {

class RefusedRetry : public DeadJobs {
 protected:
  static ClientStore::RetryMany all(int limit = 100) {
    return {.type_id = 1, .from = {}, .to = {}, .limit = limit, .rate_per_s = {}};
  }
};

TEST_F(RefusedRetry, HasItsOwnErrorAndCostsNoOther) {
  const Ids ids = dead(3);
  for (const char* state : {"P0001", "23514"}) {
    refuse("job_live", "NEW.biz_id = 'order-2'", state);
    const auto replies = must(client_store.retry_each(ids));
    ASSERT_EQ(replies.size(), 3U);
    EXPECT_TRUE(replies[0] && replies[2]) << state;
    ASSERT_FALSE(replies[1]) << state;
    EXPECT_TRUE(is_refused_row(replies[1].error())) << state;
    EXPECT_EQ(live(), 2);
    refuse_nothing();
  }
  EXPECT_EQ(retry({ids[1]}), std::vector{ChangeReply::Kind::changed});
}

TEST_F(RefusedRetry, IsLeftOutOfTheRetriesOfItsType) {
  std::vector<Error> told;
  SessionConfig telling = config();
  telling.on_refused_retry = [&told](const Error& why) { told.push_back(why); };
  Session own{telling};
  PgClientStore store{own, kShards};
  dead(6);
  refuse("job_live", "NEW.biz_id IN ('order-2', 'order-3')");
  EXPECT_EQ(must(store.retry_many(all(4))), 4) << "later ones in their place";
  ASSERT_EQ(told.size(), 1U) << "once per call";
  EXPECT_NE(told[0].message.find("it is refused"), std::string::npos);
  const auto none = store.retry_many(all());
  ASSERT_FALSE(none);
  EXPECT_TRUE(is_refused_row(none.error()));
}

TEST_F(RefusedRetry, OfEveryJobEndsTheCall) {
  const Ids ids = dead(30);
  refuse("job_live", "true");
  const auto replies = must(client_store.retry_each(ids));
  EXPECT_EQ(std::ranges::count_if(replies, [](const auto& reply) { return !reply; }), kMostRefusedInARow);
  for (const auto& reply : replies) {
    if (!reply) continue;
    EXPECT_EQ(reply->kind, ChangeReply::Kind::locked);
  }
  for (const int limit : {4, 100}) EXPECT_FALSE(client_store.retry_many(all(limit))) << limit;
}

// As CREATE INDEX on the table of a day.
TEST_F(RefusedRetry, ByALockedTableIsLockedAtOnce) {
  const Ids ids = dead(3);
  pqxx::connection other(database.url());
  pqxx::work lock(other);
  lock.exec("LOCK TABLE tocsin.job_history_dead IN SHARE MODE");
  EXPECT_EQ(retry(ids), std::vector(3, ChangeReply::Kind::locked));
  const auto none = client_store.retry_many(all());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().field, kLocked);
  lock.abort();
  EXPECT_EQ(must(client_store.retry_many(all())), 3);
}

// The control database may refuse the removal after another one has carried it out.
TEST_F(RefusedRetry, IsRepeatedWhileTheRemovalOfItsTypeIsUndecided) {
  const Ids ids = dead(1);
  Session own{{database.url(), "types"}};
  PgTypeStore types(own);
  BizType decided = must(types.find("noop")).value();
  ASSERT_EQ(must(types.remove("noop", TypeStore::Registry::copy, std::nullopt)), TypeStore::RemoveReply::removed);
  EXPECT_EQ(retry(ids), std::vector{ChangeReply::Kind::locked});
  const auto none = client_store.retry_many(all());
  ASSERT_FALSE(none) << "0 would mean that there are none";
  EXPECT_EQ(none.error().code, ErrorCode::conflict);
  decided.gmt_modified += std::chrono::hours(1);
  decided.is_removed = true;
  ASSERT_TRUE(types.mirror({&decided, 1}));
  EXPECT_EQ(retry(ids), std::vector{ChangeReply::Kind::type_removed});
  EXPECT_EQ(must(client_store.retry_many(all())), 0);
}

TEST_F(RefusedRetry, IsRepeatedIfTheRemovalOfItsTypeBeginsMeanwhile) {
  dead(2);
  database.query(
      "CREATE FUNCTION public.remove() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE tocsin.biz_type SET "
      "removed_at = now(), removal_at = now() WHERE type_id = 1; RETURN NULL; END $$");
  database.query(
      "CREATE TRIGGER remove BEFORE DELETE ON tocsin.job_history_dead FOR EACH STATEMENT EXECUTE FUNCTION "
      "public.remove()");
  const auto none = client_store.retry_many(all());
  ASSERT_FALSE(none) << "0 would mean that there are none";
  EXPECT_EQ(none.error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace tocsin
