// Lease, ack, nack and extend, as requests.
#include "support/api_fixture.h"

namespace tocsin {
namespace {

class Leases : public ApiTest {
 public:
  Leases() { backend.add_type("ticket", R"({"kind":"pull"})"); }

  std::string due_job(const std::string& key, int max_attempts = 16) {
    const Answer answer =
        post("/v1/jobs", R"({"biz_type":"ticket","biz_id":")" + key + R"(","delay_ms":0,"max_attempts":)" +
                             std::to_string(max_attempts) + "}");
    EXPECT_EQ(answer.status, 201) << answer.text;
    return answer.body.value("job_id", "");
  }
  Json lease(const std::string& body = R"({"max":10})") {
    const Answer answer = post("/v1/types/ticket/lease", body);
    EXPECT_EQ(answer.status, 200) << answer.text;
    return answer.body["items"];
  }
  static Json named(const Json& job) { return {{"job_id", job["job_id"]}, {"lease_token", job["lease_token"]}}; }
  // The result of the only item.
  std::string result(const std::string& verb, Json item, Json more = Json::object()) {
    more["items"] = Json::array({std::move(item)});
    const Answer answer = post("/v1/leases/" + verb, more.dump());
    EXPECT_EQ(answer.status, 200) << answer.text;
    return answer.body["items"][0].value("result", "");
  }
  Json job(const std::string& id) { return get("/v1/jobs/" + id).body; }
};

TEST_F(Leases, GiveWholeJobsWithATokenAndAnEnd) {
  const std::string id = due_job("a");
  const Json items = lease(R"({"max":10,"wait_ms":250,"ttr_ms":5000})");
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0]["job_id"], id);
  EXPECT_EQ(items[0]["biz_type"], "ticket");
  EXPECT_EQ(items[0]["attempts"], 1);
  EXPECT_EQ(items[0]["lease_until"], "2026-03-01T12:00:05.000000Z");
  ASSERT_TRUE(items[0]["lease_token"].is_string());
  EXPECT_EQ(items[0]["lease_token"].get<std::string>().size(), 16u);
  ASSERT_EQ(backend.leases.size(), 1u);
  EXPECT_EQ(backend.leases[0].max, 10u);
  EXPECT_EQ(backend.leases[0].wait, std::chrono::milliseconds(250));
  EXPECT_TRUE(lease().empty());
  EXPECT_EQ(backend.leases[1].wait, Duration(0));
  EXPECT_EQ(backend.leases[1].ttr, std::chrono::seconds(30)) << "the type's";
}

TEST_F(Leases, AnEmptyAnswerNeedsADatabaseThatAnswers) {
  EXPECT_TRUE(lease().empty());
  for (const DatabaseId database_id : backend.database_ids()) backend.silent.insert(database_id);
  const Answer answer = post("/v1/types/ticket/lease", R"({"max":1})");
  EXPECT_EQ(answer.status, 503) << answer.text;
}

TEST_F(Leases, AreAcknowledgedOnce) {
  const std::string id = due_job("a");
  const Json item = named(lease()[0]);
  EXPECT_EQ(result("ack", item), "ok");
  EXPECT_EQ(job(id)["status"], "done");
  EXPECT_EQ(result("ack", item), "stale");
  EXPECT_EQ(result("nack", item), "stale");
  EXPECT_EQ(result("extend", item, {{"ttr_ms", 1000}}), "stale");
  EXPECT_EQ(backend.counted[Counter::finished_done], 1);
  EXPECT_EQ(backend.counted[Counter::stale_finishes], 3);
  const TypeId type = backend.types()->find("ticket")->type_id;
  EXPECT_EQ(backend.lease_outcomes,
            (std::map<std::pair<TypeId, EventSink::Ending>, std::int64_t>{{{type, EventSink::Ending::done}, 1}}));
}

TEST_F(Leases, NackSaysWhenOrTheBackoffDoes) {
  const std::string first = due_job("a");
  Json item = named(lease()[0]);
  item["delay_ms"] = 7000;
  item["error"] = "no stock";
  EXPECT_EQ(result("nack", item), "ok");
  EXPECT_EQ(job(first)["status"], "pending");
  EXPECT_EQ(job(first)["fire_at"], "2026-03-01T12:00:07.000000Z");
  EXPECT_EQ(job(first)["errors"][0]["message"], "no stock");
  const std::string second = due_job("b");
  EXPECT_EQ(result("nack", named(lease()[0])), "ok");
  EXPECT_GE(job(second)["fire_at"], "2026-03-01T12:00:00.800000Z");
  EXPECT_LE(job(second)["fire_at"], "2026-03-01T12:00:01.200000Z") << "a second, give or take the jitter";
  EXPECT_EQ(backend.hints.back().job_id, std::stoll(second)) << "due before the next scan, perhaps";
}

TEST_F(Leases, NackWaitsForNoOtherWrite) {
  due_job("a");
  const Json item = named(lease()[0]);
  backend.posted = 0;
  EXPECT_EQ(result("nack", item), "ok");
  EXPECT_EQ(backend.posted, 2);
  EXPECT_EQ(backend.posted_lease_reads, 1) << "its first step shares the threads of short reads";
}

TEST_F(Leases, NackOfTheLastAttemptIsDead) {
  const std::string id = due_job("a", 1);
  Json item = named(lease()[0]);
  item["delay_ms"] = 0;
  EXPECT_EQ(result("nack", item), "ok");
  EXPECT_EQ(job(id)["status"], "dead");
  EXPECT_EQ(backend.counted[Counter::finished_dead], 1);
}

TEST_F(Leases, LongErrorsAreCut) {
  const std::string id = due_job("a");
  Json item = named(lease()[0]);
  item["error"] = std::string(4096, 'x');
  EXPECT_EQ(result("nack", item), "ok");
  EXPECT_EQ(job(id)["errors"][0]["message"].get<std::string>().size(), 1000u);
}

TEST_F(Leases, ExtendGivesMoreTime) {
  const std::string id = due_job("a");
  const Json item = named(lease()[0]);
  backend.time += std::chrono::seconds(20);
  EXPECT_EQ(result("extend", item, {{"ttr_ms", 60000}}), "ok");
  EXPECT_EQ(job(id)["fire_at"], "2026-03-01T12:01:20.000000Z");
  backend.time += std::chrono::seconds(61);
  EXPECT_EQ(result("ack", item), "stale") << "over";
}

TEST_F(Leases, MalformedTokensAreStaleNotErrors) {
  const std::string id = due_job("a");
  const Json leased = lease()[0];
  const std::string token = leased["lease_token"];
  for (const std::string& wrong : {std::string("x"), token + "0", token.substr(1), "-" + token.substr(1),
                                   "0x" + token.substr(2), std::string("0")})
    EXPECT_EQ(result("ack", {{"job_id", id}, {"lease_token", wrong}}), "stale") << wrong;
  for (const char* no_job : {"0", "99999999999999999999999", "7"})
    EXPECT_EQ(result("ack", {{"job_id", no_job}, {"lease_token", token}}), "stale") << no_job;
  EXPECT_EQ(job(id)["status"], "running");
}

TEST_F(Leases, AnswersFollowTheOrderOfTheRequest) {
  due_job("a");
  due_job("b");
  const Json items = lease();
  ASSERT_EQ(items.size(), 2u);
  const Json asked = Json::array({{{"job_id", "77"}, {"lease_token", "y"}}, named(items[1]), named(items[0])});
  const Answer answer = post("/v1/leases/ack", Json{{"items", asked}}.dump());
  ASSERT_EQ(answer.body["items"].size(), 3u);
  const std::vector<std::string> results{"stale", "ok", "ok"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answer.body["items"][i]["job_id"], asked[i]["job_id"]);
    EXPECT_EQ(answer.body["items"][i]["result"], results[i]);
  }
}

TEST_F(Leases, OfLockedRowsAreBusyAndTheOthersAreDone) {
  due_job("a");
  due_job("b");
  const Json items = lease();
  ASSERT_EQ(items.size(), 2u);
  const Json asked = Json::array({named(items[0]), named(items[1])});
  const JobId locked = std::stoll(items[0].value("job_id", ""));
  backend.database.lock(locked);
  const auto results = [&](const std::string& verb, Json more = Json::object()) {
    more["items"] = asked;
    const Answer answer = post("/v1/leases/" + verb, more.dump());
    EXPECT_EQ(answer.status, 200) << answer.text;
    return std::vector<std::string>{answer.body["items"][0]["result"], answer.body["items"][1]["result"]};
  };
  EXPECT_EQ(results("extend", {{"ttr_ms", 60000}}), (std::vector<std::string>{"busy", "ok"}));
  EXPECT_EQ(results("ack"), (std::vector<std::string>{"busy", "ok"}));
  EXPECT_EQ(backend.ended_leases, std::vector<JobId>{std::stoll(items[1].value("job_id", ""))});
  EXPECT_EQ(backend.counted[Counter::finished_done], 1);
  EXPECT_EQ(backend.counted[Counter::stale_finishes], 0);
  EXPECT_EQ(post("/v1/leases/ack", Json{{"items", Json::array({asked[0]})}}.dump()).status, 503) << "nothing was done";
  backend.database.unlock(locked);
  EXPECT_EQ(results("ack"), (std::vector<std::string>{"ok", "stale"}));
}

TEST_F(Leases, OfRefusedRowsAreUnavailableAndTheOthersAreDone) {
  due_job("a");
  due_job("b");
  const Json items = lease();
  Json asked{{"items", Json::array({named(items[0]), named(items[1])})}};
  backend.database.refuse(std::stoll(items[0].value("job_id", "")), FakeDatabase::unwritable_row());
  const Answer both = post("/v1/leases/ack", asked.dump());
  EXPECT_EQ(both.body["items"][0]["result"], "unavailable");
  EXPECT_EQ(both.body["items"][1]["result"], "ok");
  asked["items"].erase(1);
  const Answer alone = post("/v1/leases/ack", asked.dump());
  EXPECT_EQ(alone.status, 503);
  EXPECT_NE(alone.body.value("detail", "").find(FakeDatabase::unwritable_row().message), std::string::npos);
}

TEST_F(Leases, AreOkOnceWrittenEvenIfTheLeaseTableFails) {
  ASSERT_EQ(call("PUT", "/v1/types/ticket", R"({"handler":{"kind":"pull"},"max_running":5})").status, 200);
  due_job("a");
  const Json item = named(lease()[0]);
  backend.forgets_leases = true;
  EXPECT_EQ(result("extend", item, {{"ttr_ms", 60000}}), "ok");
  EXPECT_EQ(result("ack", item), "ok");
  EXPECT_EQ(backend.counted[Counter::finished_done], 1);
}

TEST_F(Leases, NameTheFieldAtFault) {
  const std::vector<std::array<std::string, 3>> bad{
      {"types/ticket/lease", R"({})", "max"},
      {"types/ticket/lease", R"({"max":0})", "max"},
      {"types/ticket/lease", R"({"max":1001})", "max"},
      {"types/ticket/lease", R"({"max":"10"})", "max"},
      {"types/ticket/lease", R"({"max":1,"wait_ms":60001})", "wait_ms"},
      {"types/ticket/lease", R"({"max":1,"wait_ms":-1})", "wait_ms"},
      {"types/ticket/lease", R"({"max":1,"ttr_ms":0})", "ttr_ms"},
      {"types/ticket/lease", R"({"max":1,"ttr_ms":604800001})", "ttr_ms"},
      {"types/ticket/lease", R"({"max":1,"min":1})", "min"},
      {"leases/ack", R"({})", "items"},
      {"leases/ack", R"({"items":{}})", "items"},
      {"leases/ack", R"({"items":[{"lease_token":"x"}]})", "items[0].job_id"},
      {"leases/ack", R"({"items":[{"job_id":7,"lease_token":"x"}]})", "items[0].job_id"},
      {"leases/ack", R"({"items":[{"job_id":"-7","lease_token":"x"}]})", "items[0].job_id"},
      {"leases/ack", R"({"items":[{"job_id":"7"}]})", "items[0].lease_token"},
      {"leases/ack", R"({"items":[{"job_id":"7","lease_token":12}]})", "items[0].lease_token"},
      {"leases/ack", R"({"items":[{"job_id":"7","lease_token":"x"},{"job_id":"7","lease_token":"y"}]})",
       "items[1].job_id"},
      {"leases/ack", R"({"items":[{"job_id":"7","lease_token":"x","delay_ms":1}]})", "items[0].delay_ms"},
      {"leases/nack", R"({"items":[{"job_id":"7","lease_token":"x","delay_ms":-1}]})", "items[0].delay_ms"},
      {"leases/nack", R"({"items":[{"job_id":"7","lease_token":"x","error":5}]})", "items[0].error"},
      {"leases/extend", R"({"items":[{"job_id":"7","lease_token":"x"}]})", "ttr_ms"},
      {"leases/extend", R"({"items":[],"ttr_ms":0})", "ttr_ms"},
  };
  for (const auto& [path, body, field] : bad) {
    const Answer answer = post("/v1/" + path, body);
    EXPECT_EQ(answer.status, 400) << path << ' ' << body << ' ' << answer.text;
    EXPECT_EQ(answer.field(), field) << path << ' ' << body;
  }
}

TEST_F(Leases, AreForPullTypesOnly) {
  EXPECT_EQ(post("/v1/types/order.unpaid/lease", R"({"max":1})").status, 409);
  EXPECT_EQ(post("/v1/types/nobody/lease", R"({"max":1})").status, 404);
}

TEST_F(Leases, AreRefusedForTooManyConsumers) {
  backend.is_full = true;
  const Answer answer = post("/v1/types/ticket/lease", R"({"max":1})");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.retry_after, "1");
  EXPECT_EQ(post("/v1/leases/ack", R"({"items":[{"job_id":"1024","lease_token":"0000000000000007"}]})").status, 429);
}

TEST_F(Leases, AreRefusedWhenTheQueueIsFullForTheSecondStep) {
  due_job("a");
  const Json items = lease();
  backend.takes = 1;  // a nack reads before it writes
  const Answer answer = post("/v1/leases/nack", Json{{"items", Json::array({named(items[0])})}}.dump());
  EXPECT_EQ(answer.status, 429) << answer.text;
  EXPECT_EQ(answer.retry_after, "1");
}

TEST_F(Leases, ReportADatabaseThatIsDown) {
  backend.fails = ErrorCode::unavailable;
  for (const char* verb : {"ack", "nack", "extend"}) {
    const std::string more = std::string(verb) == "extend" ? R"(,"ttr_ms":5})" : "}";
    EXPECT_EQ(post(std::string("/v1/leases/") + verb,
                   R"({"items":[{"job_id":"1024","lease_token":"0000000000000007"}])" + more)
                  .status,
              503);
  }
}

TEST_F(Leases, AReturnedLeaseFreesItsPermit) {
  const std::string acked = due_job("a"), nacked = due_job("b");
  const Json items = lease();
  EXPECT_EQ(result("ack", named(items[0])), "ok");
  EXPECT_EQ(result("ack", named(items[0])), "stale");
  EXPECT_EQ(result("nack", named(items[1])), "ok");
  std::vector<JobId> ended{std::stoll(items[0]["job_id"].get<std::string>()),
                           std::stoll(items[1]["job_id"].get<std::string>())};
  EXPECT_EQ(backend.ended_leases, ended) << "once each";
}

TEST_F(Leases, AnExtensionUpdatesTheLeaseTableOfALimitedType) {
  due_job("a");
  EXPECT_EQ(result("extend", named(lease()[0]), {{"ttr_ms", 1000}}), "ok");
  EXPECT_TRUE(backend.extended_leases.empty());
  ASSERT_EQ(call("PUT", "/v1/types/ticket", R"({"handler":{"kind":"pull"},"max_running":5})").status, 200);
  const std::string id = due_job("b");
  const Json item = named(lease()[0]);
  EXPECT_EQ(result("extend", item, {{"ttr_ms", 1000}}), "ok");
  ASSERT_EQ(backend.extended_leases.size(), 1U);
  EXPECT_EQ(backend.extended_leases[0].second, std::stoll(id));
}

// The control database gives the permits of a node that it does not hear to others, when the leases it knows are over.
TEST_F(Leases, NoExtensionWithoutTheControlDatabase) {
  due_job("a");
  const Json free = named(lease()[0]);
  backend.is_cut_off_from_control = true;
  EXPECT_EQ(result("extend", free, {{"ttr_ms", 60000}}), "ok") << "without max_running nothing is counted";
  ASSERT_EQ(call("PUT", "/v1/types/ticket", R"({"handler":{"kind":"pull"},"max_running":5})").status, 200);
  due_job("b");
  const Json item = named(lease()[0]);
  const Job before = *backend.database.find(std::stoll(item["job_id"].get<std::string>()));
  EXPECT_EQ(result("extend", item, {{"ttr_ms", 60000}}), "unavailable");
  EXPECT_EQ(backend.database.find(before.job_id)->fire_at, before.fire_at);
  EXPECT_TRUE(backend.extended_leases.empty());
  backend.is_cut_off_from_control = false;
  EXPECT_EQ(result("extend", item, {{"ttr_ms", 60000}}), "ok");
}

TEST_F(Leases, AnExtensionIsOneStatementWhateverTheTypes) {
  ASSERT_EQ(call("PUT", "/v1/types/ticket", R"({"handler":{"kind":"pull"},"max_running":5})").status, 200);
  due_job("a");
  const Json item = named(lease()[0]);
  backend.verbs.clear();
  EXPECT_EQ(result("extend", item, {{"ttr_ms", 1000}}), "ok");
  EXPECT_EQ(backend.verbs, std::vector<std::string>{"extend"});
}

}  // namespace
}  // namespace tocsin
