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

TEST(Cli, CancelsAllJobsOfAKeyHoweverManyThereAre) {
  httplib::Server server;
  std::vector<std::string> answers = {R"({"cancelled":["2"],"finished":["1"],"more":false})",
                                      R"({"cancelled":["1"],"more":true})"};
  server.Post("/v1/jobs/cancel", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(answers.back(), "application/json");
    answers.pop_back();
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::jthread serving([&] { server.listen_after_bind(); });
  const Ran ran = run({"job", "cancel", "--biz-id", "order-1", "--url", "http://127.0.0.1:" + std::to_string(port)});
  server.stop();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(answers.empty()) << "the first answer says that there are more";
  EXPECT_NE(ran.out.find("1  cancelled"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("2  cancelled"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("finished"), std::string::npos) << "it was cancelled by this command";
}

TEST(Cli, EveryHelpTextFitsEightyColumns) {
  Chosen chosen;
  expect_fits(*make_app(chosen));
}

}  // namespace
}  // namespace tocsin
