// Every route of the API under requests that are almost right: each has an answer that is no accident, and afterwards
// the API serves on.
#include <algorithm>
#include <set>
#include <sstream>

#include "fuzz/mutator.h"
#include "support/api_fixture.h"

namespace tocsin {
namespace {

struct Asked {
  std::string method, target, body;
};

const std::string kReportQuery =
    "?type=order.unpaid&from=2026-02-01T00:00:00Z&to=2026-03-02T00:00:00Z&tz=Europe/Berlin&limit=5";
// One for each route at least.
const std::vector<Asked> kRequests = {
    {"POST", "/v1/jobs", R"({"biz_type":"order.unpaid","biz_id":"o-1","delay_ms":60000,"attribute":{"n":1}})"},
    {"POST", "/v1/jobs",
     R"({"biz_type":"order.unpaid","biz_id":"o-2","action_time":"2026-03-01T12:00:00.250+01:00","idempotency_key":"k",)"
     R"("on_conflict":"replace","max_attempts":3})"},
    {"POST", "/v1/jobs/batch?partial=true",
     R"({"jobs":[{"biz_type":"order.unpaid","biz_id":"a","delay_ms":1},{"biz_type":"nothing","biz_id":"b","delay_ms":1}]})"},
    {"POST", "/v1/jobs/1/cancel", ""},
    {"POST", "/v1/jobs/cancel", R"({"biz_type":"order.unpaid","biz_id":"o-1"})"},
    {"POST", "/v1/jobs/cancel", R"({"job_ids":["1","2"]})"},
    {"POST", "/v1/jobs/1/reschedule", R"({"delay_ms":5})"},
    {"POST", "/v1/jobs/1/run", ""},
    {"POST", "/v1/jobs/1/retry", ""},
    {"POST", "/v1/jobs/retry",
     R"({"biz_type":"order.unpaid","limit":10,"rate_per_s":5.5,"from":"2026-03-01T12:00:00Z"})"},
    {"GET", "/v1/jobs/1", ""},
    {"GET", "/v1/jobs/1/explain", ""},
    {"GET", "/v1/jobs?biz_type=order.unpaid&status=pending&limit=5&from=2026-03-01T12:00:00Z&biz_id=o-1", ""},
    {"PUT", "/v1/types/order.unpaid",
     R"({"handler":{"kind":"webhook","url":"https://example.com/x","timeout_ms":1000,"secrets":["whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0"]},)"
     R"("max_attempts":3,"backoff":{"delays_ms":[1,2,3]},"ttr_ms":30000,"rate_per_s":10.5,"max_running":5,)"
     R"("catch_up":{"rate_per_s":5,"drop_older_than_ms":60000}})"},
    {"PUT", "/v1/types/x", R"({"handler":{"kind":"sql","function":"shop.cancel"}})"},
    {"PUT", "/v1/types/y", R"({"handler":{"kind":"amqp","url":"amqp://u:p@h/v","exchange":"e","routing_key":"r"}})"},
    {"GET", "/v1/types/order.unpaid", ""},
    {"POST", "/v1/types/order.unpaid/pause", R"({"until":"2060-03-01T12:00:00Z"})"},
    {"POST", "/v1/types/order.unpaid/resume", ""},
    {"DELETE", "/v1/types/x", ""},
    {"POST", "/v1/leases/ack", R"({"items":[{"job_id":"1","lease_token":"abcd"}]})"},
    {"POST", "/v1/leases/nack", R"({"items":[{"job_id":"1","lease_token":"abcd","delay_ms":100,"error":"no"}]})"},
    {"POST", "/v1/leases/extend", R"({"items":[{"job_id":"1","lease_token":"abcd"}],"ttr_ms":1000})"},
    {"POST", "/v1/types/pulled/lease", R"({"max":10,"wait_ms":0})"},
    {"PUT", "/v1/types/pulled",
     R"({"handler":{"kind":"pull"},"backoff":{"base_ms":10,"factor":2,"max_ms":99,"jitter":0}})"},
    {"GET", "/v1/types", ""},
    {"GET", "/healthz", ""},
    {"GET", "/metrics", ""},
    {"GET", "/v1/stats", ""},
    {"GET", "/v1/nodes", ""},
    {"GET", "/v1/shards", ""},
    {"GET", "/openapi.json", ""},
    {"GET", "/readyz", ""},
    {"GET", "/v1/me", ""},
    {"GET", "/v1/overview", ""},
    {"GET", "/v1/endpoints?limit=5", ""},
    {"POST", "/v1/bulk",
     R"({"action":"reschedule","filter":{"biz_type":"order.unpaid","biz_id":"o-1","from":"2026-03-01T12:00:00Z"},)"
     R"("action_time":"2026-03-02T12:00:00Z","spread_ms":1000,"rate_per_s":50})"},
    {"POST", "/v1/bulk", R"({"action":"cancel","filter":{"biz_type":"order.unpaid"},"dry_run":true})"},
    {"GET", "/v1/bulk", ""},
    {"GET", "/v1/bulk/1", ""},
    {"POST", "/v1/bulk/1/stop", ""},
    {"GET", "/v1/reports/hour" + kReportQuery, ""},
    {"GET", "/v1/reports/day" + kReportQuery, ""},
    {"GET", "/v1/reports/lateness" + kReportQuery, ""},
    {"GET", "/v1/reports/duration" + kReportQuery, ""},
    {"GET", "/v1/reports/slo" + kReportQuery, ""},
    {"GET", "/v1/reports/dead" + kReportQuery, ""},
    {"GET", "/v1/reports/dead_now" + kReportQuery, ""},
    {"GET", "/v1/reports/recent" + kReportQuery, ""},
    {"GET", "/v1/reports/outcome" + kReportQuery, ""},
    {"GET", "/v1/reports/delay" + kReportQuery, ""},
    {"GET", "/v1/reports/horizon" + kReportQuery, ""},
    {"GET", "/v1/reports/backlog" + kReportQuery, ""},
    {"GET", "/v1/reports/audit" + kReportQuery, ""},
};
const std::vector<std::string> kSpice = {
    "null",
    "true",
    "-1",
    "0",
    "1e308",
    "1e400",
    "0e-20000",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "\"\"",
    "{}",
    "[]",
    "[null]",
    "{\"a\":1}",
    "\\u0000",
    "\\ud800",
    "\xff",
    std::string(1, '\0'),
    std::string(300, 'x'),
    "9999-12-31T23:59:59.9999999Z",
    "0000-01-01T00:00:00Z",
    "-infinity",
    "%00",
    "%",
    "%ff",
    "%2f",
    "/",
    "//",
    "..",
    "?",
    "&",
    "=",
    "&limit=0",
    "&limit=99999999999",
    "&cursor=zz",
    ";",
    "#",
    "'",
    "--",
    "http://169.254.169.254/",
    "[::1]",
    "\r\n",
    "order.unpaid",
};

class ApiFuzz : public ApiTest {
 public:
  void try_one(std::uint64_t seed) {
    Mutator mutator(seed);
    Asked asked = mutator.any_of(kRequests);
    const std::string other = mutator.any_of(kRequests).method;
    if (mutator.below(20) == 0) asked.method = other;
    if (mutator.below(3) == 0) asked.target = "/" + mutator.mutate(asked.target.substr(1), kSpice);
    asked.body = mutator.mutate(asked.body, kSpice);
    const std::string what =
        "seed " + std::to_string(seed) + ": " + asked.method + ' ' + asked.target + ' ' + asked.body;
    const Answer answer = call(asked.method, asked.target, asked.body);
    ASSERT_FALSE(HasFailure()) << what;  // answer_of() has checked its form
    if (answer.status < 300) return;
    ASSERT_GE(answer.status, 400) << what;
    ASSERT_LT(answer.status, 500) << what << '\n' << answer.text;
    ASSERT_FALSE(answer.body.value("detail", std::string()).empty()) << what << '\n' << answer.text;
  }
};

// Or what is made of them would be refused at the first step.
TEST_F(ApiFuzz, SeedRequestsAreValid) {
  for (const Asked& asked : kRequests) {
    const Answer answer = call(asked.method, asked.target, asked.body);
    EXPECT_NE(answer.status, 400) << asked.target << ' ' << answer.text;
  }
}

std::vector<std::string> segments(const std::string& path) {
  std::vector<std::string> parts;
  std::istringstream in(path.substr(0, path.find('?')));
  for (std::string part; std::getline(in, part, '/');) parts.push_back(part);
  return parts;
}

bool matches(const Route& route, const Asked& asked) {
  const auto is_same = [](const std::string& wanted, const std::string& given) {
    return wanted.starts_with('{') || wanted == given;
  };
  return route.method == asked.method && std::ranges::equal(segments(route.path), segments(asked.target), is_same);
}

TEST_F(ApiFuzz, SeedRequestsAskEveryRoute) {
  std::set<const Route*> asked_routes;
  const auto& routes = api.router().routes();
  for (const Asked& asked : kRequests) {
    const auto route = std::ranges::find_if(routes, [&](const Route& each) { return matches(each, asked); });
    ASSERT_NE(route, routes.end()) << asked.target;
    asked_routes.insert(&*route);
  }
  for (const Route& route : routes) EXPECT_TRUE(asked_routes.contains(&route)) << route.method << ' ' << route.path;
}

TEST_F(ApiFuzz, AnswersEveryMutatedRequest) {
  const auto [first, last] = fuzz_seeds(50'000);
  for (std::uint64_t seed = first; seed <= last && !HasFailure(); ++seed) try_one(seed);
  EXPECT_EQ(call("PUT", "/v1/types/last", R"({"handler":{"kind":"noop"}})").status, 201);
  EXPECT_EQ(post("/v1/jobs", R"({"biz_type":"last","biz_id":"z","delay_ms":1})").status, 201);
}

}  // namespace
}  // namespace tocsin
