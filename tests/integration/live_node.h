// A node on a database of its own, and the words most tests need.
#pragma once

#include <gtest/gtest.h>

#include "support/node_process.h"
#include "support/test_database.h"
#include "support/webhook_receiver.h"

namespace tocsin {

class LiveNode : public ::testing::Test {
 protected:
  NodeProcess& node() {
    if (!node_) start();
    return *node_;
  }
  Rest& rest() { return node().rest(); }
  void start(std::vector<std::string> options = {}) {
    node_.reset();
    node_ = std::make_unique<NodeProcess>(database.url(), std::move(options));
  }

  void put_type(const std::string& name, Json type) {
    const Reply reply = rest().put("/v1/types/" + name, type);
    ASSERT_TRUE(reply.status == 200 || reply.status == 201) << reply.text;
  }
  void put_noop(const std::string& name = "noop") { put_type(name, {{"handler", {{"kind", "noop"}}}}); }

  // Creates a job; its id.
  std::string create(Json job) {
    if (!job.contains("biz_id")) job["biz_id"] = "key-" + std::to_string(++last_key_);
    const Reply reply = rest().post("/v1/jobs", job);
    EXPECT_EQ(reply.status, 201) << reply.text;
    return reply.status == 201 ? reply.body["job_id"].get<std::string>() : "0";
  }
  std::string create(const std::string& type, int delay_ms) {
    return create({{"biz_type", type}, {"delay_ms", delay_ms}});
  }
  Json job(const std::string& id) { return rest().get("/v1/jobs/" + id).body; }
  std::string status(const std::string& id) { return job(id).value("status", ""); }
  bool becomes(const std::string& id, const std::string& wanted) {
    return eventually([&] { return status(id) == wanted; });
  }
  // Counts in the view `tocsin.job`, straight from the tables.
  std::int64_t count(const std::string& status) {
    return database.number("SELECT count(*) FROM tocsin.job WHERE status = '" + status + "'");
  }

  TestDatabase database{8};
  WebhookReceiver receiver;  // outlives the node: a connection that a node keeps open would hold up its end

 private:
  std::unique_ptr<NodeProcess> node_;
  int last_key_ = 0;
};

}  // namespace tocsin
