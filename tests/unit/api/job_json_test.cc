#include "api/job_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/openapi.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + 12h;

TypeCatalog catalog() {
  BizType type;
  type.type_id = 5;
  type.name = "order.unpaid";
  return TypeCatalog({type});
}

Job whole_job() {
  Job job;
  job.job_id = make_job_id(4, 17);
  job.biz_id = "o \"1\"";
  job.type_id = 5;
  job.status = JobStatus::dead;
  job.action_time = kNoon + 250ms;
  job.fire_at = kNoon + 1s;
  job.attempts = 2;
  job.max_attempts = 2;
  job.attribute_json = R"({"price":1.10})";
  job.idempotency_key = "k";
  job.node = "n1";
  job.gmt_create = kNoon - 1h;
  job.gmt_modified = kNoon + 2s;
  job.started_at = kNoon + 251ms + 500us;
  job.last_started_at = kNoon + 1s + 500us;
  job.finished_at = kNoon + 2s;
  job.errors = {{"2026-03-01T12:00:01.000000Z", "n1", 1, "HTTP 500\n", "2026-03-01T12:00:00.251500Z"}};
  return job;
}

TEST(JobJson, WritesEveryField) {
  EXPECT_EQ(
      job_text(whole_job(), catalog()),
      R"({"job_id":"4113","biz_id":"o \"1\"","biz_type":"order.unpaid","status":"dead","action_time":"2026-03-01T12:00:00.250000Z",)"
      R"("fire_at":"2026-03-01T12:00:01.000000Z","attempts":2,"max_attempts":2,"attribute":{"price":1.10},"idempotency_key":"k","shard":17,)"
      R"("node":"n1","gmt_create":"2026-03-01T11:00:00.000000Z","gmt_modified":"2026-03-01T12:00:02.000000Z",)"
      R"("started_at":"2026-03-01T12:00:00.251500Z","last_started_at":"2026-03-01T12:00:01.000500Z",)"
      R"("finished_at":"2026-03-01T12:00:02.000000Z","lateness_ms":1.5,)"
      R"("errors":[{"at":"2026-03-01T12:00:01.000000Z","node":"n1","attempt":1,"message":"HTTP 500\n",)"
      R"("started_at":"2026-03-01T12:00:00.251500Z"}]})");
}

TEST(JobJson, WritesNullForWhatIsNotThere) {
  Job job;
  job.job_id = 1024;
  job.biz_type = "gone";
  const auto json = nlohmann::json::parse(job_text(job, catalog()));
  for (const char* name :
       {"attribute", "idempotency_key", "node", "started_at", "last_started_at", "finished_at", "lateness_ms"})
    EXPECT_TRUE(json.at(name).is_null()) << name;
  EXPECT_EQ(json.at("errors"), nlohmann::json::array());
  EXPECT_EQ(json.at("biz_type"), "gone");
}

TEST(JobJson, HasTheFieldsOfThePublishedSchema) {
  const auto schemas = nlohmann::json::parse(openapi_schemas());
  const auto job = nlohmann::json::parse(job_text(whole_job(), catalog()));
  std::set<std::string> published, written;
  for (const auto& [name, schema] : schemas.at("Job").at("properties").items()) published.insert(name);
  for (const auto& [name, value] : job.items()) written.insert(name);
  EXPECT_EQ(published, written);
  EXPECT_EQ(schemas.at("Job").at("required").size(), written.size());
}

TEST(JobId, IsDigits) {
  EXPECT_EQ(job_id_from_text("4113"), 4113);
  EXPECT_EQ(job_id_from_text("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(job_id_from_text("9223372036854775808"), 0);
  for (const char* text : {"", "-1", "+1", "1.0", "0x10", " 1", "1 ", "abc", "\xD9\xA1"})
    EXPECT_EQ(job_id_from_text(text), std::nullopt) << text;
}

TEST(Traceparent, MustBeWellFormed) {
  EXPECT_TRUE(is_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
  for (const char* text : {"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
    EXPECT_FALSE(is_traceparent(text)) << text;
}

}  // namespace
}  // namespace tocsin
