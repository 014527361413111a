// A node whose jobs go out to a broker, and the shape that the tests of every kind share.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "integration/live_node.h"
#include "support/temp_file.h"

namespace tocsin {

class BrokerNode : public LiveNode {
 protected:
  // A type that is tried until it works.
  static Json exit_type(const Json& handler) {
    return {{"handler", handler}, {"backoff", {{"delays_ms", {100}}}}, {"max_attempts", 1000}};
  }
  // Due over half a second; their ids.
  std::set<std::string> create_many(const std::string& type, int n) {
    Json jobs = Json::array();
    for (int i = 0; i < n; ++i)
      jobs.push_back({{"biz_type", type}, {"biz_id", "b-" + std::to_string(i)}, {"delay_ms", i % 500}});
    const Reply reply = rest().post("/v1/jobs/batch", {{"jobs", jobs}});
    EXPECT_EQ(reply.status, 201) << reply.text;
    std::set<std::string> ids;
    for (const Json& item : reply.body["items"]) ids.insert(item["job_id"]);
    return ids;
  }
  std::string first_error(const std::string& id) {
    const Json errors = job(id)["errors"];
    return errors.empty() ? "" : errors[0]["message"].get<std::string>();
  }
  bool fails_with(const std::string& id, const std::string& reason) {
    return eventually([&] { return first_error(id).find(reason) != std::string::npos; });
  }
  bool shows(const std::string& metric) {
    return eventually([&] { return rest().get("/metrics").text.find(metric + "\n") != std::string::npos; });
  }

  // The broker stops while thousands of jobs are on their way and starts again: the ids of all that must have
  // arrived. `target` names the broker in errors.
  std::set<std::string> survive_an_outage(const Json& type, const std::string& target,
                                          const std::function<void()>& go_down, const std::function<void()>& come_up) {
    constexpr int kJobs = 3000;
    put_type("crash", type);
    put_noop();
    std::set<std::string> ids = create_many("crash", kJobs);
    EXPECT_TRUE(eventually([&] { return count("done") > 200; }));
    go_down();
    EXPECT_LT(count("done"), kJobs) << "in the middle";
    EXPECT_TRUE(becomes(create("noop", 0), "done")) << "others go on";
    const std::string late = create("crash", 0);
    EXPECT_TRUE(fails_with(late, target)) << "the attempt says why";
    ids.insert(late);
    come_up();
    EXPECT_TRUE(eventually([&] { return count("done") == kJobs + 2; })) << "and the others are delivered";
    return ids;
  }

  // The broker is down when the first jobs come.
  void waits_for_its_broker(const Json& type, const std::string& target, const std::function<void()>& come_up) {
    put_type("early", type);
    put_noop();
    const std::string early = create("early", 0);
    EXPECT_TRUE(fails_with(early, target)) << "the attempt says why";
    EXPECT_TRUE(becomes(create("noop", 0), "done")) << "others go on";
    EXPECT_NE(status(early), "done");
    come_up();
    EXPECT_TRUE(becomes(early, "done"));
  }

  // With tokens a node may serve strangers: what is at its own machine's address is left alone unless it is told so.
  // `type` names its broker in a way that is judged when it is connected to.
  void may_be_refused_its_address(const Json& type) {
    const std::string token = "broker-test-token-0123456789";
    const TokenFile file(token);
    std::string job;
    {
      NodeProcess shy(database.url(), {"--token-file", file.path()}, token);
      Rest its(shy.port(), token);
      EXPECT_EQ(its.put("/v1/types/inside", type).status, 201);
      const Reply created = its.post("/v1/jobs", {{"biz_type", "inside"}, {"biz_id", "1"}, {"delay_ms", 0}});
      job = "/v1/jobs/" + created.body["job_id"].get<std::string>();
      EXPECT_TRUE(
          eventually([&] { return its.get(job).body["errors"].dump().find("--allow-webhook") != std::string::npos; }));
    }
    NodeProcess told(database.url(), {"--token-file", file.path(), "--allow-webhook", "127.0.0.0/8"}, token);
    EXPECT_TRUE(eventually([&] { return Rest(told.port(), token).get(job).body["status"] == "done"; }));
  }

  // Removed or changed, a type keeps no connection; `metric` counts those of its kind.
  void keeps_no_connection(const std::string& metric, const Json& type) {
    put_type("passing", type);
    EXPECT_TRUE(becomes(create("passing", 0), "done"));
    EXPECT_TRUE(shows(metric + " 1"));
    put_noop("passing");
    EXPECT_TRUE(shows(metric + " 0")) << "changed to another kind";
    put_type("passing", type);
    EXPECT_TRUE(becomes(create("passing", 0), "done"));
    EXPECT_TRUE(shows(metric + " 1"));
    EXPECT_EQ(rest().remove("/v1/types/passing").status, 200);
    EXPECT_TRUE(shows(metric + " 0")) << "removed";
  }
};

}  // namespace tocsin
