// Jobs in several databases: what is asked of which, and what an answer says when one of them gives none.
#include <map>
#include <set>

#include "unit/api/databases_api.h"

namespace tocsin {
namespace {

TEST_F(DatabasesApi, AJobIsCreatedReadAndCancelledWhereItsShardLives) {
  for (DatabaseId database_id = 0; database_id < 3; ++database_id) {
    const std::string id = make_job(key_at(database_id));
    EXPECT_EQ(live_at(database_id), 1U);
    EXPECT_EQ(get("/v1/jobs/" + id).status, 200);
    EXPECT_EQ(get("/v1/jobs/" + id + "/explain").body.at("database"), backend.database_name(database_id));
    EXPECT_EQ(post("/v1/jobs/" + id + "/reschedule", R"({"delay_ms":90000})").status, 200);
    EXPECT_EQ(post("/v1/jobs/" + id + "/cancel").status, 200);
    EXPECT_EQ(live_at(database_id), 0U);
  }
}

TEST_F(DatabasesApi, ADeadDatabaseIsNamedAndTheOthersServe) {
  const std::string there = make_job(key_at(1)), elsewhere = make_job(key_at(2));
  kill(1);
  const Answer refused =
      post("/v1/jobs", R"({"biz_type":"order.unpaid","delay_ms":1,"biz_id":")" + key_at(1, 1) + "\"}");
  EXPECT_EQ(refused.status, 503);
  for (const Answer& answer : {refused, get("/v1/jobs/" + there), post("/v1/jobs/" + there + "/cancel")}) {
    EXPECT_EQ(answer.status, 503) << answer.text;
    EXPECT_NE(answer.text.find("db1 (db.example"), std::string::npos) << answer.text;
  }
  EXPECT_EQ(get("/v1/jobs/" + elsewhere).status, 200);
  make_job(key_at(0));
}

TEST_F(DatabasesApi, ADatabaseThatThisNodeWasNotGivenIsNamedToo) {
  backend.unknown = {2};
  const Answer answer = post("/v1/jobs/batch", batch_of({key_at(2)}));
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.text.find("db2"), std::string::npos) << answer.text;
  EXPECT_EQ(live_at(2), 0U);
}

TEST_F(DatabasesApi, ABatchOverAllDatabasesAnswersInOrderAsIfThereWereOne) {
  const Answer answer = post("/v1/jobs/batch", batch_of({key_at(2), key_at(0), key_at(1), key_at(2, 1)}));
  ASSERT_EQ(answer.status, 201) << answer.text;
  ASSERT_EQ(answer.body.at("items").size(), 4U);
  const DatabaseId wanted[] = {2, 0, 1, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    const Json& item = answer.body.at("items")[i];
    EXPECT_EQ(backend.database_of(shard_of(std::stoll(item.at("job_id").get<std::string>()))), wanted[i]);
    EXPECT_EQ(item.at("created"), true);
  }
}

TEST_F(DatabasesApi, ABatchIsAllOrNothingInEachDatabaseAndAnswersEachItem) {
  kill(1);
  const Answer answer = post("/v1/jobs/batch", batch_of({key_at(0), key_at(1), key_at(2), key_at(1, 1)}));
  EXPECT_EQ(answer.status, 503) << answer.text;
  EXPECT_NE(answer.body.at("detail").get<std::string>().find("db1"), std::string::npos) << answer.text;
  ASSERT_EQ(answer.body.at("items").size(), 4U) << answer.text;
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(answer.body.at("items")[i].contains("job_id"), i % 2 == 0) << i;
  EXPECT_EQ(answer.body.at("items")[1].at("error").at("status"), 503);
  EXPECT_EQ(live_at(0) + live_at(2), 2U);
}

TEST_F(DatabasesApi, ARefusalUndoesOnlyItsOwnDatabase) {
  const std::string key = R"(,"idempotency_key":"x")";
  make_job(key_at(1), key + R"(,"attribute":1)");
  const Answer answer = post("/v1/jobs/batch", batch_of({key_at(0), key_at(1, 1), key_at(1)}, key));
  EXPECT_EQ(answer.status, 409) << answer.text;
  EXPECT_EQ(answer.field(), "jobs[2].idempotency_key");
  EXPECT_TRUE(answer.body.at("items")[0].contains("job_id"));
  EXPECT_TRUE(answer.body.at("items")[1].contains("error")) << "undone with its neighbour";
  EXPECT_EQ(answer.body.at("items")[2].at("error").at("status"), 409);
  EXPECT_EQ(live_at(0), 1U);
  EXPECT_EQ(live_at(1), 1U);
}

TEST_F(DatabasesApi, ABatchThatIsRefusedIsRecordedWithTheJobsThatItCreated) {
  const std::string key = R"(,"idempotency_key":"x")";
  make_job(key_at(1), key + R"(,"attribute":1)");
  backend.recorded.clear();
  EXPECT_EQ(post("/v1/jobs/batch", batch_of({key_at(0), key_at(1, 1), key_at(1)}, key)).status, 409);
  kill(1);
  EXPECT_EQ(post("/v1/jobs/batch", batch_of({key_at(0), key_at(1), key_at(2)})).status, 503);
  EXPECT_EQ(post("/v1/jobs/batch", batch_of({key_at(1)})).status, 503);
  ASSERT_EQ(backend.recorded.size(), 2U);
  EXPECT_EQ(backend.recorded[0].action, "createJobs");
  EXPECT_EQ(backend.recorded[0].changed, 1) << "one was undone with its neighbour";
  EXPECT_EQ(backend.recorded[1].changed, 2);
}

TEST_F(DatabasesApi, ABatchThatIsPartialHasAnErrorForEachItemOfADeadDatabase) {
  kill(2);
  const Answer answer = post("/v1/jobs/batch?partial=true", batch_of({key_at(2), key_at(0)}));
  EXPECT_EQ(answer.status, 201) << answer.text;
  EXPECT_EQ(answer.body.at("items")[0].at("error").at("status"), 503);
  EXPECT_EQ(answer.body.at("items")[1].at("created"), true);
}

TEST_F(DatabasesApi, ABatchOfOneDownDatabaseIsUnavailableAsAWhole) {
  kill(1);
  const Answer answer = post("/v1/jobs/batch", batch_of({key_at(1), key_at(1, 1)}));
  EXPECT_EQ(answer.status, 503);
  EXPECT_FALSE(answer.body.contains("items")) << answer.text;
}

TEST_F(DatabasesApi, AListIsNewestFirstForAnyIdsOfItsDatabases) {
  std::vector<std::string> wanted;
  const auto make = [&](DatabaseId database_id, int n) {
    backend.time += std::chrono::seconds(1);
    wanted.insert(wanted.begin(), make_job(key_at(database_id, n)));
  };
  for (int i = 0; i < 9; ++i) make(0, i);  // ids of the control database run ahead
  for (int i = 0; i < 3; ++i) make(1, i);
  make(2, 0);
  make(0, 9);
  for (const int limit : {1, 4, 5, 100}) {
    std::vector<std::string> seen;
    std::string cursor;
    do {
      const Answer page = get("/v1/jobs?limit=" + std::to_string(limit) + cursor);
      ASSERT_EQ(page.status, 200) << page.text;
      for (const Json& job : page.body.at("items")) seen.push_back(job.at("job_id"));
      const Json& next = page.body.at("next_cursor");
      cursor = next.is_null() ? "" : "&cursor=" + next.get<std::string>();
    } while (!cursor.empty());
    EXPECT_EQ(seen, wanted) << limit;
  }
}

TEST_F(DatabasesApi, AListIsMergedAndPagesThroughAllDatabasesOnce) {
  std::set<std::string> created;
  for (int i = 0; i < 25; ++i) created.insert(make_job("j-" + std::to_string(i)));
  std::vector<JobId> seen;
  std::string cursor;
  for (int pages = 0; pages < 10; ++pages) {
    const Answer page = get("/v1/jobs?limit=4" + cursor);
    ASSERT_EQ(page.status, 200) << page.text;
    EXPECT_FALSE(page.body.contains("missing"));
    for (const Json& item : page.body.at("items")) seen.push_back(std::stoll(item.at("job_id").get<std::string>()));
    if (page.body.at("next_cursor").is_null()) break;
    cursor = "&cursor=" + page.body.at("next_cursor").get<std::string>();
  }
  EXPECT_EQ(seen.size(), 25U);
  EXPECT_TRUE(std::ranges::is_sorted(seen, std::greater()));
  for (const JobId id : seen) EXPECT_TRUE(created.contains(std::to_string(id)));
}

TEST_F(DatabasesApi, AListSaysWhichDatabaseIsMissingFromIt) {
  for (DatabaseId database_id = 0; database_id < 3; ++database_id) make_job(key_at(database_id));
  kill(1);
  const Answer page = get("/v1/jobs");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body.at("items").size(), 2U);
  EXPECT_EQ(page.body.at("missing"), Json::parse(R"(["db1"])"));
  EXPECT_EQ(get("/v1/jobs?biz_id=" + key_at(1)).status, 503) << "nothing else could answer";
  const Answer other = get("/v1/jobs?biz_id=" + key_at(2));
  EXPECT_EQ(other.status, 200);
  EXPECT_FALSE(other.body.contains("missing")) << "a key lives in one database";
  EXPECT_EQ(get("/v1/stats").body.at("missing"), Json::parse(R"(["db1"])"));
  kill(0), kill(2);
  EXPECT_EQ(get("/v1/jobs").status, 503);
}

TEST_F(DatabasesApi, ADatabaseKnownToBeUnavailableIsNotWaitedFor) {
  backend.silent = {2};
  EXPECT_EQ(get("/v1/stats").body.at("missing"), Json::parse(R"(["db2"])"));
  EXPECT_EQ(backend.posted, 2);
}

TEST_F(DatabasesApi, ShardsOfADeadDatabaseAreListedWithoutTheirNumbers) {
  make_job(key_at(0));
  kill(1);
  const Answer answer = get("/v1/shards");
  EXPECT_EQ(answer.body.at("missing"), Json::parse(R"(["db1"])"));
  for (const Json& item : answer.body.at("items")) {
    const auto database_id = item.at("shard").get<int>() % 3;
    EXPECT_EQ(item.at("database"), backend.database_name(database_id));
    EXPECT_EQ(item.at("pending_due_soon").is_null(), database_id == 1);
  }
}

TEST_F(DatabasesApi, StatsAddUp) {
  for (DatabaseId database_id = 0; database_id < 3; ++database_id) make_job(key_at(database_id));
  EXPECT_EQ(get("/v1/stats").body.at("totals").at("pending"), 3);
}

TEST_F(DatabasesApi, CancelManyReportsItemsWithoutAnAnswer) {
  std::map<DatabaseId, std::string> ids;
  for (DatabaseId database_id = 0; database_id < 3; ++database_id) ids[database_id] = make_job(key_at(database_id));
  kill(1);
  backend.fails_at[2] = ErrorCode::in_doubt;
  const Answer answer =
      post("/v1/jobs/cancel", R"({"job_ids":[")" + ids[0] + R"(",")" + ids[1] + R"(",")" + ids[2] + R"(","9999999"]})");
  EXPECT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body.at("cancelled"), Json::array({ids[0]}));
  EXPECT_EQ(answer.body.at("unavailable"), Json::array({ids[1]}));
  EXPECT_EQ(answer.body.at("in_doubt"), Json::array({ids[2]}));
  EXPECT_EQ(answer.body.at("not_found").size(), 1U);
  EXPECT_EQ(post("/v1/jobs/cancel", R"({"biz_id":")" + key_at(0) + "\"}").body.at("finished"), Json::array({ids[0]}));
}

TEST_F(DatabasesApi, WhatMayHaveHappenedIsInDoubtIfTheOtherDatabasesAreDown) {
  const std::string down = make_job(key_at(0)), lost = make_job(key_at(2));
  kill(0);
  backend.fails_at[2] = ErrorCode::in_doubt;
  const auto lease = [](const std::string& id) {
    return R"({"lease_token":"0000000000000001","job_id":")" + id + "\"}";
  };
  const Answer ack = post("/v1/leases/ack", R"({"items":[)" + lease(down) + "," + lease(lost) + "]}");
  ASSERT_EQ(ack.status, 200) << ack.text;
  EXPECT_EQ(ack.body.at("items")[0].at("result"), "unavailable");
  EXPECT_EQ(ack.body.at("items")[1].at("result"), "in_doubt");
  const Answer cancel = post("/v1/jobs/cancel", R"({"job_ids":[")" + down + R"(",")" + lost + "\"]}");
  ASSERT_EQ(cancel.status, 200) << cancel.text;
  EXPECT_EQ(cancel.body.at("cancelled"), Json::array());
  EXPECT_EQ(cancel.body.at("unavailable"), Json::array({down}));
  EXPECT_EQ(cancel.body.at("in_doubt"), Json::array({lost}));
}

// A job of SQL that is relayed while the request waits for it.
TEST_F(DatabasesApi, JobsThatComeOutOfAnOutboxAreFound) {
  const std::string key = key_at(1);
  std::string id;
  const auto relay = [&] { backend.relay = [&] { id = make_job(key); }; };
  relay();
  const Answer listed = get("/v1/jobs?status=pending&biz_id=" + key);
  ASSERT_EQ(listed.body.at("items").size(), 1U);
  EXPECT_EQ(listed.body.at("items")[0].at("job_id"), id);
  const std::string next = std::to_string(std::stoll(id) + kMaxShards);  // which the next job will have
  relay();
  EXPECT_EQ(get("/v1/jobs/" + next + "/explain").status, 200);
  EXPECT_EQ(id, next);
  const std::string third = std::to_string(std::stoll(id) + kMaxShards);
  relay();
  EXPECT_EQ(post("/v1/jobs/cancel", cancel_of(third)).body.at("cancelled"), Json::array({third}));
  EXPECT_EQ(id, third);
}

TEST_F(DatabasesApi, AKeyedCreateFindsTheJobThatComesOutOfAnOutbox) {
  const std::string key = key_at(1);
  const std::string job =
      R"("biz_type":"order.unpaid","delay_ms":60000,"idempotency_key":"once","biz_id":")" + key + '"';
  std::string id;
  const auto relay = [&] {
    backend.relay = [&] { id = post("/v1/jobs", '{' + job + '}').body.at("job_id").get<std::string>(); };
  };
  relay();
  const Answer one = post("/v1/jobs", '{' + job + '}');
  EXPECT_EQ(one.status, 200);
  EXPECT_EQ(one.body.at("job_id"), id);
  const Answer many = post("/v1/jobs/batch", R"({"jobs":[{)" + job + "}]}");
  EXPECT_EQ(many.body.at("items")[0], Json({{"job_id", id}, {"created", false}}));
  backend.keys_in_outbox = {key};
  EXPECT_EQ(post("/v1/jobs", '{' + job + '}').status, 503);
  EXPECT_EQ(post("/v1/jobs/batch", R"({"jobs":[{)" + job + "}]}").status, 503);
  const Answer partial =
      post("/v1/jobs/batch?partial=true",
           R"({"jobs":[{)" + job + R"(},{"biz_type":"order.unpaid","delay_ms":60000,"biz_id":")" + key + "\"}]}");
  EXPECT_EQ(partial.body.at("items")[0].at("error").at("status"), 503);
  EXPECT_EQ(partial.body.at("items")[1].at("created"), true);
  EXPECT_EQ(post("/v1/jobs/batch", R"({"jobs":[{)" + job + R"(},{"biz_type":"order.unpaid"}]})").status, 400)
      << "what can never be created is refused first";
  EXPECT_EQ(make_job(key).empty(), false) << "without an idempotency key it need not wait";
}

TEST_F(DatabasesApi, JobsThatMayWaitInADownDatabaseAreNotUnknown) {
  const std::string key = key_at(1), id = make_job(key), unknown = std::to_string(std::stoll(id) + kMaxShards);
  backend.silent = {2};
  for (const char* const more : {"", "&status=pending"}) {
    const Answer listed = get("/v1/jobs?biz_id=" + key + more);
    EXPECT_EQ(listed.body.at("items").size(), 1U);
    EXPECT_EQ(listed.body.at("missing"), Json::parse(R"(["db2"])"));
  }
  const Answer explained = get("/v1/jobs/" + unknown + "/explain");
  EXPECT_EQ(explained.status, 503);
  EXPECT_NE(explained.text.find("from the database db2, which does not answer"), std::string::npos) << explained.text;
  const Answer by_ids = post("/v1/jobs/cancel", cancel_of(unknown));
  EXPECT_EQ(by_ids.body.at("locked"), Json::array({unknown}));
  const Answer by_key = post("/v1/jobs/cancel", R"({"biz_id":")" + key + "\"}");
  EXPECT_EQ(by_key.body.at("cancelled"), Json::array({id}));
  EXPECT_EQ(by_key.body.at("missing"), Json::parse(R"(["db2"])"));
}

TEST_F(DatabasesApi, JobsThatStayInAnOutboxAreNotUnknown) {
  const std::string key = key_at(1), id = make_job(key);
  const std::string entry = std::to_string(std::stoll(id) + kMaxShards);
  backend.in_outbox = {std::stoll(entry)};
  backend.keys_in_outbox = {key};
  for (const Answer& answer : {get("/v1/jobs?status=pending&biz_id=" + key), get("/v1/jobs/" + entry + "/explain")}) {
    EXPECT_EQ(answer.status, 503);
    EXPECT_NE(answer.body.at("detail").dump().find("on its way"), std::string::npos) << answer.body;
    EXPECT_EQ(answer.retry_after, "1");
  }
  const Answer cancelled = post("/v1/jobs/cancel", R"({"job_ids":[")" + entry + R"(",")" + id + "\"]}");
  EXPECT_EQ(cancelled.body.at("cancelled"), Json::array({id}));
  EXPECT_EQ(cancelled.body.at("locked"), Json::array({entry}));
  EXPECT_EQ(cancelled.body.at("not_found"), Json::array());
}

TEST_F(DatabasesApi, AcksGoToTheDatabaseOfTheirJob) {
  std::string items;
  for (DatabaseId database_id = 0; database_id < 3; ++database_id)
    items += (database_id ? "," : "") + std::string(R"({"lease_token":"0000000000000001","job_id":")") +
             make_job(key_at(database_id)) + "\"}";
  kill(2);
  const Answer answer = post("/v1/leases/ack", R"({"items":[)" + items + "]}");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body.at("items")[0].at("result"), "stale");
  EXPECT_EQ(answer.body.at("items")[1].at("result"), "stale");
  EXPECT_EQ(answer.body.at("items")[2].at("result"), "unavailable");
}

TEST_F(DatabasesApi, TypesAreMirroredBeforeTheirAnswer) {
  EXPECT_EQ(call("PUT", "/v1/types/order.late", R"({"handler":{"kind":"noop"}})").status, 201);
  for (DatabaseId database_id = 0; database_id < 3; ++database_id) {
    const auto types = backend.database_at(database_id).list_types();
    ASSERT_EQ(types.size(), 2U) << database_id;
    EXPECT_EQ(types[0].name, "order.late");
    EXPECT_EQ(types[0].type_id, backend.database.list_types()[0].type_id);
  }
}

TEST_F(DatabasesApi, ATypeIsNotDeletedWhileAnyDatabaseHasItsJobsOrCannotTell) {
  const std::string id = make_job(key_at(2));
  EXPECT_EQ(call("DELETE", "/v1/types/order.unpaid").status, 409);
  post("/v1/jobs/" + id + "/cancel");
  kill(1);
  const Answer unknown = call("DELETE", "/v1/types/order.unpaid");
  EXPECT_EQ(unknown.status, 503);
  EXPECT_NE(unknown.text.find("db1"), std::string::npos);
  backend.fails_at.clear();
  EXPECT_EQ(call("DELETE", "/v1/types/order.unpaid").status, 200);
}

class BulkRetries : public DatabasesApi {
 protected:
  void make_dead_jobs(DatabaseId database_id, int n) {
    FakeDatabase& database = backend.database_at(database_id);
    database.mirror_types(backend.database.list_types());
    for (int i = 0; i < n; ++i) {
      const std::string id = make_job(key_at(database_id, i));
      FakeJobStore store(database);
      backend.time += std::chrono::minutes(2);
      const JobId job = std::stoll(id);
      const std::array jobs{Candidate{job, database.find(job)->type_id, {}}};
      const std::array ttr{Duration(std::chrono::seconds(30))};
      const auto claimed = store.claim(jobs, ttr, {.seed = i + 1, .node = "n"});
      ASSERT_TRUE(claimed && claimed->won.size() == 1);
      const std::array outcome{
          FinishRequest{job, claimed->won.front().token, FinishRequest::Kind::dead, Duration(0), "x"}};
      ASSERT_TRUE(store.finish(outcome, "n"));
    }
  }
};

TEST_F(BulkRetries, KeepTheirLimitOverAllDatabases) {
  for (DatabaseId database_id = 0; database_id < 3; ++database_id) make_dead_jobs(database_id, 2);
  EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"order.unpaid","limit":3})").body.at("retried"), 3);
  kill(1);
  const Answer rest = post("/v1/jobs/retry", R"({"biz_type":"order.unpaid"})");
  EXPECT_EQ(rest.body.at("missing"), Json::parse(R"(["db1"])")) << rest.text;
  EXPECT_EQ(rest.body.at("retried"), 2);
}

TEST_F(BulkRetries, AreInDoubtAndEndWhenAReplyIsLost) {
  for (DatabaseId database_id = 0; database_id < 3; ++database_id)
    make_dead_jobs(database_id, database_id == 2 ? 1 : 0);
  backend.fails_at[1] = ErrorCode::in_doubt;
  const Answer answer = post("/v1/jobs/retry", R"({"biz_type":"order.unpaid"})");
  EXPECT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body.at("in_doubt"), Json::parse(R"(["db1"])"));
  EXPECT_FALSE(answer.body.contains("missing")) << "it is not known to have done nothing";
  EXPECT_EQ(answer.body.at("retried"), 0) << "nobody knows what is left of the limit";
}

TEST_F(BulkRetries, AreInDoubtIfTheOtherDatabasesAreDown) {
  for (DatabaseId database_id = 0; database_id < 3; ++database_id) make_dead_jobs(database_id, 1);
  backend.recorded.clear();
  kill(0);
  backend.fails_at[1] = ErrorCode::in_doubt;
  const Answer answer = post("/v1/jobs/retry", R"({"biz_type":"order.unpaid"})");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body.at("retried"), 0);
  EXPECT_EQ(answer.body.at("missing"), Json::parse(R"(["tocsin"])")) << answer.text;
  EXPECT_EQ(answer.body.at("in_doubt"), Json::parse(R"(["db1"])"));
  EXPECT_EQ(backend.recorded.size(), 1U) << "it may have retried jobs";
}

TEST_F(BulkRetries, ReportTheirProgressWhenALaterQueueIsFull) {
  for (DatabaseId database_id = 0; database_id < 3; ++database_id)
    backend.database_at(database_id).mirror_types(backend.database.list_types());
  backend.full_at = {1, 2};
  const Answer answer = post("/v1/jobs/retry", R"({"biz_type":"order.unpaid"})");
  EXPECT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body.at("retried"), 0);
  EXPECT_EQ(answer.body.at("missing"), Json::parse(R"(["db1","db2"])"));
  backend.full_at.clear();
  backend.silent = {2};
  EXPECT_EQ(post("/v1/jobs/retry", R"({"biz_type":"order.unpaid"})").body.at("missing"), Json::parse(R"(["db2"])"));
}

TEST_F(DatabasesApi, AnUnknownTypeIsNotDeletedWhileAnyDatabaseHasItsJobs) {
  BizType type;
  type.name = "order.new";
  type.handler_kind = "noop";
  type.handler_json = R"({"kind":"noop"})";
  const BizType stored = backend.database.put_type(type, backend.time).type;  // by another node
  backend.database_at(2).mirror_types(backend.database.list_types());
  NewJob job;
  job.biz_id = key_at(2);
  job.type_id = stored.type_id;
  job.when.in = std::chrono::minutes(1);
  ASSERT_TRUE(backend.database_at(2).create({job}, CreateMode::each_by_itself, backend.time));
  ASSERT_EQ(backend.types()->find("order.new"), nullptr);
  EXPECT_EQ(call("DELETE", "/v1/types/order.new").status, 409);
  EXPECT_EQ(call("DELETE", "/v1/types/order.newer").status, 404);
}

}  // namespace
}  // namespace tocsin
