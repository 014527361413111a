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

class FragileNode : public LiveNode {};

// Every attempt counts, even one that takes its process along: the job dies, the fleet lives.
TEST_F(FragileNode, AHandlerThatKillsTheProcessEndsDeadAndTheRestGoesOn) {
  put_type("kills", {{"handler", {{"kind", "cpp"}}}, {"ttr_ms", 300}, {"max_attempts", 3}});
  put_type("fine", {{"handler", {{"kind", "cpp"}}}});
  const std::string killer = create("kills", 0);
  std::vector<std::string> fine;
  for (int i = 0; i < 20; ++i) fine.push_back(create("fine", i * 100));
  EXPECT_EQ(node().stop(), 0) << "this node has none of their functions";

  std::unique_ptr<Process> fragile;
  int deaths = 0;
  EXPECT_TRUE(eventually([&] {
    if (fragile && !fragile->is_running()) {
      EXPECT_EQ(fragile->wait(), 128 + SIGABRT) << fragile->err();
      ++deaths;
      fragile.reset();
    }
    if (!fragile) fragile = std::make_unique<Process>(std::vector<std::string>{TOCSIN_FRAGILE_NODE, database.url()});
    return count("dead") == 1 && count("done") == 20;
  }));
  EXPECT_EQ(deaths, 3);
  EXPECT_TRUE(fragile->is_running());
  EXPECT_EQ(database.number("SELECT attempts FROM tocsin.job WHERE job_id = " + killer), 3);
}

}  // namespace
}  // namespace tocsin
