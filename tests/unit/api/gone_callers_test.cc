// Requests that wait in the queue of a database when nobody waits for their answers any more.
#include "support/api_fixture.h"

namespace tocsin {
namespace {

class GoneCallers : public ApiTest {
 public:
  explicit GoneCallers(int databases = 1) : ApiTest(databases) {}

  // The request waits for a database; then its reply time is over, and the database answers.
  void leave_before(const std::string& method, const std::string& target, const std::string& body = "") {
    backend.is_holding = true;
    run(method, target, body);
    ASSERT_FALSE(backend.held.empty());
    backend.verbs.clear();
    backend.recorded.clear();
    *is_gone = true;
    backend.run_held();
  }

  void run(const std::string& method, const std::string& target, const std::string& body) {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.host = "localhost";
    request.content_type = body.empty() ? "" : "application/json";
    Admission admission = api.router().admit(request);
    ASSERT_FALSE(admission.refusal);
    request.body = body;
    request.reservation = budget.reserve(100);
    admission.run(std::move(request), Responder([](const HttpResponse&) {}, is_gone));
  }

  const std::string batch = R"({"jobs":[{"biz_type":"order.unpaid","biz_id":"a","delay_ms":60000}]})";
  const std::shared_ptr<std::atomic<bool>> is_gone = std::make_shared<std::atomic<bool>>(false);
  ByteBudget budget{100};
};

TEST_F(GoneCallers, WorkThatHasNotBegunIsDropped) {
  const std::string job = make_job("a");
  leave_before("POST", "/v1/jobs/batch", batch);
  EXPECT_TRUE(backend.verbs.empty());
  EXPECT_TRUE(backend.recorded.empty());
  *is_gone = false;
  leave_before("POST", "/v1/jobs/cancel", R"({"job_ids":[")" + job + R"("]})");
  EXPECT_TRUE(backend.verbs.empty());
  *is_gone = false;
  leave_before("POST", "/v1/jobs/retry", R"({"biz_type":"order.unpaid"})");
  EXPECT_TRUE(backend.verbs.empty());
  *is_gone = false;
  leave_before("GET", "/v1/jobs?status=pending");
  EXPECT_TRUE(backend.verbs.empty());
  *is_gone = false;
  leave_before("POST", "/v1/types/order.unpaid/pause");
  EXPECT_TRUE(backend.verbs.empty());
  EXPECT_EQ(get("/v1/jobs/" + job).body.at("status"), "pending");
  EXPECT_EQ(get("/v1/jobs?biz_id=a").body.at("items").size(), 1U);
}

struct GoneCallersOfTwoDatabases : GoneCallers {
  GoneCallersOfTwoDatabases() : GoneCallers(2) {}
};

// The parts of a batch wait for their databases by themselves.
TEST_F(GoneCallersOfTwoDatabases, PartsOfABatchThatHaveNotBegunAreDropped) {
  std::string jobs;
  for (int i = 0; i < 8; ++i)
    jobs += std::string(i == 0 ? "" : ",") + R"({"biz_type":"order.unpaid","delay_ms":60000,"biz_id":")" +
            std::to_string(i) + "\"}";
  backend.is_holding = true;
  run("POST", "/v1/jobs/batch", "{\"jobs\":[" + jobs + "]}");
  ASSERT_EQ(backend.held.size(), 1U);
  const auto [database_id, parse] = backend.held.front();
  backend.held.clear();
  backend.posted = 0;
  backend.held.emplace_back(database_id, [&, work = parse](Stores& stores) {
    backend.is_holding = true;  // the parts wait again
    work(stores);
    *is_gone = true;
  });
  backend.run_held();
  backend.is_holding = false;
  EXPECT_EQ(backend.posted, 2);
  EXPECT_TRUE(get("/v1/jobs?limit=100").body.at("items").empty());
}

// What waits for a database holds what the body has become.
TEST_F(GoneCallers, TheReservationOfABodyLastsAsLongAsItsWork) {
  backend.is_holding = true;
  run("POST", "/v1/jobs/batch", batch);
  EXPECT_FALSE(budget.reserve(1));
  backend.run_held();
  EXPECT_TRUE(budget.reserve(100));
}

TEST_F(GoneCallers, LaterStepsOfAWriteAreNotDropped) {
  backend.is_holding = true;
  run("DELETE", "/v1/types/order.unpaid", "");
  *is_gone = true;
  backend.run_held();
  EXPECT_EQ(get("/v1/types/order.unpaid").status, 404);
}

}  // namespace
}  // namespace tocsin
