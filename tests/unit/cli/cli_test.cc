// The command line as a whole: exit codes, and help that fits a screen.
#include "cli/cli.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <sstream>
#include <thread>

#include "api/job_json.h"
#include "api/openapi.h"
#include "api/page.h"
#include "base/text.h"
#include "cli/command.h"

namespace tocsin {
namespace {

struct Ran {
  int code = 0;
  std::string out, err;
};

Ran run(std::vector<std::string> words) {
  words.insert(words.begin(), "tocsin");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run_cli(static_cast<int>(argv.size()), argv.data());
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(Cli, HelpAndVersionAreDone) {
  EXPECT_EQ(run({"--help"}).code, 0);
  EXPECT_EQ(run({"job", "create", "--help"}).code, 0);
  const Ran version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("tocsin ", 0), 0u);
}

TEST(Cli, BadUsageExitsWith2AndIsExplainedOnStandardError) {
  const std::vector<std::vector<std::string>> bad = {
      {},
      {"job"},
      {"frobnicate"},
      {"serve", "--frobnicate"},
      {"serve", "--database", "postgresql://x/y", "--retain", "done=7"},
      {"serve", "--database", "postgresql://x/y", "--listen", "nowhere"},
      {"job", "get"},
      {"job", "get", "12x"},
      {"job", "create", "--type", "a", "--id", "b"},
      {"job", "create", "--type", "a", "--id", "b", "--in", "15m", "--at", "2026-03-01T12:00:00Z"},
      {"job", "create", "--type", "a", "--id", "b", "--in", "15"},
      {"job", "create", "--type", "a", "--id", "b", "--in", "15m", "--attribute", "{"},
      {"job", "create", "--type", "a", "--id", "b", "--in", "15m", "--attribute", ""},
      {"job", "create", "--type", "a", "--id", "b", "--in", "15m", "--on-conflict", "perhaps"},
      {"job", "cancel"},
      {"job", "cancel", "1", "--biz-id", "2"},
      {"job", "retry", "1", "--type", "a"},
      {"job", "list", "--limit", "0"},
      {"job", "create", "--type", "a", "--id", "b", "--in", "15m", "--max-attempts", std::to_string(kMaxAttempts + 1)},
      {"type", "put", "a", "--handler", "noop", "--max-attempts", std::to_string(kMaxAttempts + 1)},
      {"type", "put", "a"},
      {"nodes", "--url", "ftp://somewhere"},
      {"nodes", "--url", "foo"},
      {"nodes", "--url", ""},
      {"nodes", "--config", "/nowhere/tocsin.toml"},
  };
  for (const auto& words : bad) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 2) << testing::PrintToString(words);
    EXPECT_EQ(ran.err.rfind("error: ", 0), 0u) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

// Shards may leave several databases, and each would have a URL of its own.
TEST(Cli, RebalanceRefusesTheUrlOfOneSource) {
  const Ran ran = run({"shard", "rebalance", "--database", "a=postgresql://x/y", "--database", "b=postgresql://x/z",
                       "--source-url", "postgresql://x/y"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--source-url is the URL of one source"), std::string::npos) << ran.err;
  EXPECT_EQ(run({"shard", "rebalance", "--help"}).out.find("--source-url"), std::string::npos);
  EXPECT_NE(run({"shard", "move", "--help"}).out.find("--source-url"), std::string::npos);
}

TEST(Cli, ABadUrlIsNamedWithItsOption) {
  EXPECT_EQ(run({"nodes", "--url", "foo"}).err.rfind("error: --url: 'foo' is no URL", 0), 0u);
  EXPECT_EQ(run({"nodes", "--url", "127.0.0.1:1"}).code, 1) << "host and port will do";
}

TEST(Cli, AServerOutOfReachIsAFailureThatNamesIt) {
  const Ran ran = run({"nodes", "--url", "http://127.0.0.1:1"});  // nobody listens on port 1
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("cannot reach http://127.0.0.1:1"), std::string::npos) << ran.err;
}

// The command line accepts the same ranges as the published API. No server listens on port 1.
TEST(Cli, AcceptsExactlyWhatTheServerAccepts) {
  const Json schemas = Json::parse(openapi_schemas());
  const auto most = [&](const char* schema, const char* field) {
    return static_cast<std::int64_t>(schemas.at(schema).at("properties").at(field).at("maximum").get<double>());
  };
  using Words = std::vector<std::string>;
  const Words create{"job", "create", "--type", "a", "--id", "b", "--in", "1s"}, retry{"job", "retry", "--type", "a"},
      put{"type", "put", "a", "--handler", "noop"};
  const std::vector<std::tuple<Words, std::string, std::int64_t>> limits = {
      {create, "--max-attempts", most("NewJob", "max_attempts")},
      {retry, "--limit", most("RetryJobs", "limit")},
      {retry, "--rate", most("RetryJobs", "rate_per_s")},
      {put, "--max-attempts", most("NewType", "max_attempts")},
      {put, "--max-running", most("NewType", "max_running")},
      {put, "--rate", most("NewType", "rate_per_s")},
      {{"job", "list"}, "--limit", kMostPerPage},
  };
  for (const auto& [words, option, limit] : limits) {
    for (const auto& [value, code] : {std::pair(limit, 1), {limit + 1, 2}}) {
      Words all = words;
      for (const std::string& word : {option, std::to_string(value), std::string("--url"), std::string("127.0.0.1:1")})
        all.push_back(word);
      const Ran ran = run(all);
      EXPECT_EQ(ran.code, code) << testing::PrintToString(all) << ran.err;
    }
    Words help = words;
    help.emplace_back("--help");
    std::istringstream lines(run(help).out);
    for (std::string line; std::getline(lines, line);) {
      const bool is_range = line.find(option + " ") != line.npos && line.find("1 to ") != line.npos;
      EXPECT_TRUE(!is_range || line.find("1 to " + std::to_string(limit)) != line.npos) << line;
    }
  }
}

void expect_fits(CLI::App& command) {
  std::istringstream help(command.help());
  for (std::string line; std::getline(help, line);)
    EXPECT_LE(display_width(line), 80u) << command.get_name() << ": " << line;
  EXPECT_FALSE(command.get_description().empty()) << command.get_name();
  for (CLI::App* next : command.get_subcommands([](CLI::App*) { return true; })) expect_fits(*next);
}

// Runs a command against a server that gives these answers in their order.
Ran run_against(const std::string& path, std::vector<std::string> answers, std::vector<std::string> words) {
  httplib::Server server;
  std::size_t answered = 0;
  const auto answer = [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(answered < answers.size() ? answers[answered] : "", "application/json");
    ++answered;
  };
  server.Get(path, answer);
  server.Post(path, answer);
  words.insert(words.end(), {"--url", "http://127.0.0.1:" + std::to_string(server.bind_to_any_port("127.0.0.1"))});
  std::jthread serving([&] { server.listen_after_bind(); });
  const Ran ran = run(words);
  server.stop();
  EXPECT_EQ(answered, answers.size()) << ran.out << ran.err;
  return ran;
}

Ran cancel_key(const std::vector<std::string>& answers) {
  return run_against("/v1/jobs/cancel", answers, {"job", "cancel", "--biz-id", "order-1"});
}

TEST(Cli, CancelsAllJobsOfAKeyHoweverManyThereAre) {
  const Ran ran = cancel_key({R"({"cancelled":["1"],"locked":["3"],"more":true})",
                              R"({"cancelled":["2","3"],"finished":["1"],"more":false})"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* row : {"1  cancelled", "2  cancelled", "3  cancelled"})
    EXPECT_NE(ran.out.find(row), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("finished"), std::string::npos) << "it was cancelled by this command";
}

TEST(Cli, CancelOfAKeyIsDoneOnlyIfNoLiveJobMayBeLeft) {
  EXPECT_EQ(cancel_key({R"({"cancelled":["1"],"finished":["2"]})"}).code, 0) << "a finished one is not live";
  for (const char* left : {R"("running":["2"])", R"("locked":["2"])", R"("unavailable":["2"])", R"("in_doubt":["2"])",
                           R"("missing":["b"])"}) {
    EXPECT_EQ(cancel_key({R"({"cancelled":["1"],)" + std::string(left) + "}"}).code, 1) << left;
  }
  EXPECT_EQ(cancel_key({R"({"cancelled":[],"finished":["2"]})"}).code, 1) << "nothing was cancelled";
  EXPECT_EQ(cancel_key({R"({"cancelled":["1"],"more":true})", R"({"cancelled":[],"more":true})"}).code, 1);
}

TEST(Cli, CancelOfAKeyNamesAMissingDatabaseBesideTheJobs) {
  const Ran ran = cancel_key({R"({"cancelled":["1"],"missing":["east"]})"});
  EXPECT_EQ(ran.out.find("east"), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("do not answer: east"), std::string::npos) << ran.err;
}

TEST(Cli, RetryOfATypeIsDoneOnlyIfAllDatabasesAnswered) {
  const std::vector<std::string> retry{"job", "retry", "--type", "a"};
  EXPECT_EQ(run_against("/v1/jobs/retry", {R"({"retried":1})"}, retry).code, 0);
  for (const char* list : {"missing", "in_doubt"}) {
    const Ran ran = run_against("/v1/jobs/retry", {R"({"retried":1,")" + std::string(list) + R"(":["east"]})"}, retry);
    EXPECT_EQ(ran.code, 1) << list;
    EXPECT_NE(ran.err.find("east"), std::string::npos) << ran.err;
  }
}

TEST(Cli, NodesAndShardsAreListedToTheLastPage) {
  for (const std::string list : {"nodes", "shards"}) {
    const std::vector<std::string> pages = {R"({"items":[{"node":"first"}],"next_cursor":"c"})",
                                            R"({"items":[{"node":"last"}],"next_cursor":null,"missing":["east"]})"};
    for (const bool is_json : {false, true}) {
      const Ran ran =
          run_against("/v1/" + list, pages, is_json ? std::vector{list, std::string("--json")} : std::vector{list});
      EXPECT_EQ(ran.code, 0) << ran.err;
      EXPECT_NE(ran.out.find("first"), std::string::npos) << ran.out;
      EXPECT_NE(ran.out.find("last"), std::string::npos) << ran.out;
      EXPECT_NE(ran.err.find("do not answer: east"), std::string::npos) << ran.err;
    }
  }
}

TEST(Cli, EveryHelpTextFitsEightyColumns) {
  Chosen chosen;
  expect_fits(*make_app(chosen));
}

}  // namespace
}  // namespace tocsin
