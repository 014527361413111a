// libtocsin in other programs: from the installed tree, and with handlers that harm the process they run in.
#include <signal.h>

#include <filesystem>
#include <regex>

#include "integration/live_node.h"

namespace tocsin {
namespace {

Ran must_run(const std::vector<std::string>& arguments) {
  Ran ran = run(arguments);
  EXPECT_EQ(ran.exit_code, 0) << arguments[0] << " " << arguments[1] << ":\n" << ran.out << ran.err;
  return ran;
}

TEST(Library, AProgramFindsTheInstalledPackageAndRunsItsHandlers) {
  const std::string dir = required_env("TOCSIN_TEST_DIR") + "/library", cmake = TOCSIN_CMAKE;
  std::filesystem::remove_all(dir);
  must_run({cmake, "--install", TOCSIN_BUILD_DIR, "--prefix", dir + "/installed", "--component", "library"});
  must_run({cmake, "-S", std::string(TOCSIN_EXAMPLES) + "/embedded", "-B", dir + "/build", "-G", "Ninja",
            "-DCMAKE_PREFIX_PATH=" + dir + "/installed", std::string("-DCMAKE_CXX_FLAGS=") + TOCSIN_FLAGS});
  must_run({cmake, "--build", dir + "/build"});

  TestDatabase database;
  Process shop({dir + "/build/shop", database.url(), "127.0.0.1:0"});
  std::smatch port;
  std::string log;
  ASSERT_TRUE(eventually([&] {
    log = shop.err();
    return std::regex_search(log, port, std::regex("on port ([0-9]+)")) || !shop.is_running();
  }));
  ASSERT_FALSE(port.empty()) << log;
  Rest rest(std::stoi(port[1]));
  const Json type{{"handler", {{"kind", "cpp"}}}};
  for (const char* name : {"order.unpaid", "ticket.untouched"}) {
    ASSERT_EQ(rest.put(std::string("/v1/types/") + name, type).status, 201);
    ASSERT_EQ(rest.post("/v1/jobs", {{"biz_type", name}, {"biz_id", "t-4711"}, {"delay_ms", 0}}).status, 201);
  }
  EXPECT_TRUE(
      eventually([&] { return database.number("SELECT count(*) FROM tocsin.job WHERE status = 'done'") == 1; }));
  EXPECT_TRUE(eventually([&] {
    return database.number(
               "SELECT count(*) FROM tocsin.job WHERE status = 'dead' AND attempts = 2"
               " AND errors->1->>'message' = 'nobody answers ticket t-4711'") == 1;
  }));
  EXPECT_NE(shop.out().find("order t-4711 was not paid in time"), std::string::npos);
  shop.signal(SIGTERM);
  EXPECT_EQ(shop.wait(), 0) << shop.err();
}

class FragileNode : public LiveNode {
 protected:
  void put_cpp(const std::string& name, Json more = Json::object()) {
    more["handler"] = {{"kind", "cpp"}};
    put_type(name, more);
  }
  static std::unique_ptr<Process> start_fragile(const TestDatabase& database) {
    return std::make_unique<Process>(std::vector<std::string>{TOCSIN_FRAGILE_NODE, database.url()});
  }
  std::int64_t dead_with(const std::string& type, const std::string& error) {
    return database.number("SELECT count(*) FROM tocsin.job WHERE status = 'dead' AND attempts = 2 AND biz_type = '" +
                           type + "' AND errors->-1->>'message' LIKE '%" + error + "%'");
  }
};

// Every attempt counts, even one that takes its process along: the job dies, the fleet lives.
TEST_F(FragileNode, AHandlerThatKillsTheProcessEndsDeadAndTheRestContinues) {
  put_cpp("kills", {{"ttr_ms", 100}});
  put_cpp("fine");
  const std::string killer = create("kills", 0);
  std::vector<std::string> fine;
  for (int i = 0; i < 20; ++i) fine.push_back(create("fine", i * 100));
  EXPECT_EQ(node().stop(), 0) << "this node has none of their functions";

  std::unique_ptr<Process> fragile;
  int deaths = 0;
  EXPECT_TRUE(eventually(
      [&] {
        if (fragile && !fragile->is_running()) {
          EXPECT_EQ(fragile->wait(), 128 + SIGABRT) << fragile->err();
          ++deaths;
          fragile.reset();
        }
        if (!fragile) fragile = start_fragile(database);
        return count("dead") == 1 && count("done") == 20;
      },
      5 * kPatience));
  EXPECT_EQ(deaths, 16) << "as many as a type has attempts when nothing is said";
  EXPECT_TRUE(fragile->is_running());
  EXPECT_EQ(database.number("SELECT attempts FROM tocsin.job WHERE job_id = " + killer), 16);
}

TEST_F(FragileNode, HandlersThatThrowOrBlockOrWantAllMemoryHurtTheirOwnTypesOnly) {
  const Json twice = {{"ttr_ms", 500}, {"max_attempts", 2}, {"backoff", {{"delays_ms", {10}}}}};
  for (const char* name : {"throws", "throws.odd", "greedy", "blocks"}) {
    put_cpp(name, twice);
    for (int i = 0; i < 2; ++i) create(name, 0);  // for ever, twice each: all four workers
  }
  put_cpp("fine");
  for (int i = 0; i < 40; ++i) create("fine", i * 100);
  EXPECT_EQ(node().stop(), 0) << "this node has none of their functions";

  const auto fragile = start_fragile(database);
  EXPECT_TRUE(eventually([&] { return count("done") == 40 && count("dead") == 8; }));
  EXPECT_EQ(dead_with("throws", "no such shop"), 2);
  EXPECT_EQ(dead_with("throws.odd", "no std::exception"), 2);
  EXPECT_EQ(dead_with("greedy", "bad_alloc"), 2);
  EXPECT_EQ(dead_with("blocks", ""), 2);
  EXPECT_EQ(database.number("SELECT max(attempts) FROM tocsin.job WHERE biz_type = 'fine'"), 1);
  database.query("SELECT tocsin.create_job('fine', 'late', clock_timestamp())");
  EXPECT_TRUE(eventually([&] { return count("done") == 41; })) << "also when no worker is left";
  fragile->signal(SIGTERM);
  EXPECT_EQ(fragile->wait(), 0) << fragile->err();
}

}  // namespace
}  // namespace tocsin
