// Where settings come from: flag, then environment, then file, then default.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/config_file.h"
#include "cli/node_options.h"
#include "support/temp_file.h"

namespace tocsin {
namespace {

using Variables = std::map<std::string, std::string>;

NodeConfig configured(const std::string& flags, const Variables& variables = {}, const std::string& file = "") {
  NodeConfig config;
  CLI::App app;
  add_node_options(app, config);
  const TempFile config_file("settings.toml", file);
  app.parse(file.empty() ? flags : flags + " --config " + config_file.path());
  apply_settings(app, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
  return config;
}

std::string complaint(const std::string& flags, const Variables& variables = {}, const std::string& file = "") {
  try {
    configured(flags, variables, file);
  } catch (const BadUsage& error) {
    return error.what();
  } catch (const CLI::Error& error) {
    return error.what();
  }
  return "";
}

TEST(Settings, DefaultsApplyWithoutSettings) {
  const NodeConfig config = configured("");
  EXPECT_EQ(config.listen, "127.0.0.1:7070");
  EXPECT_EQ(config.retain_days.at("dead"), 30);
  EXPECT_TRUE(config.databases.empty());
}

TEST(Settings, FlagsWinOverVariablesAndVariablesOverTheFile) {
  const std::string file = "listen = \"0.0.0.0:1\"\nnode_name = \"from-file\"\nworkers = 9\n";
  const Variables variables = {{"TOCSIN_LISTEN", "0.0.0.0:2"}, {"TOCSIN_NODE_NAME", "from-environment"}};
  const NodeConfig config = configured("--listen 0.0.0.0:3", variables, file);
  EXPECT_EQ(config.listen, "0.0.0.0:3");
  EXPECT_EQ(config.node_name, "from-environment");
  EXPECT_EQ(config.workers, 9);
}

TEST(Settings, TheFileMayBeNamedByAVariable) {
  const TempFile file("settings.toml", "node-name = \"a\"");
  EXPECT_EQ(configured("", {{"TOCSIN_CONFIG", file.path()}}).node_name, "a");
}

TEST(Settings, AListFromOneSourceReplacesThatOfAnother) {
  const std::string file = "database = [\"postgresql://file/a\", \"postgresql://file/b\"]";
  EXPECT_EQ(configured("", {}, file).databases,
            (std::vector<std::string>{"postgresql://file/a", "postgresql://file/b"}));
  EXPECT_EQ(configured("--database x --database y", {}, file).databases, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(configured("", {{"TOCSIN_DATABASE", "postgresql://env/a,postgresql://env/b"}}, file).databases.front(),
            "postgresql://env/a");
}

TEST(Settings, AMultiHostConnectionStringIsNotSplit) {
  EXPECT_EQ(split_databases("postgresql://a:1,b:2/x,postgresql://c/y"),
            (std::vector<std::string>{"postgresql://a:1,b:2/x", "postgresql://c/y"}));
  EXPECT_EQ(split_databases("host=a,b dbname=x,host=c dbname=y"),
            (std::vector<std::string>{"host=a,b dbname=x", "host=c dbname=y"}));
  EXPECT_EQ(split_databases("eu-1=postgresql://a:1,b:2/x?options=-c%20a=b,Eu.2=postgres://c/y"),
            (std::vector<std::string>{"eu-1=postgresql://a:1,b:2/x?options=-c%20a=b", "Eu.2=postgres://c/y"}));
}

TEST(Settings, FlagsAndTablesOfTheFileHaveTypes) {
  const NodeConfig config =
      configured("", {}, "migrate = true\nretain = \"done=1d\"\ndrain_timeout = \"500ms\"\nshards = 16");
  EXPECT_TRUE(config.migrate_first);
  EXPECT_EQ(config.retain_days.at("done"), 1);
  EXPECT_EQ(config.drain_timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(config.shards, 16);
}

TEST(Settings, EntryTablesOfTheFileAreWhatTheFlagTakes) {
  const NodeConfig config =
      configured("", {}, "[[entry]]\nkind = \"amqp\"\nqueue = \"a\\\"b\"\nprefetch = 5\n[[entry]]\nkind = \"kafka\"\n");
  ASSERT_EQ(config.entries.size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(config.entries[0]),
            nlohmann::json::parse(R"({"kind":"amqp","queue":"a\"b","prefetch":5})"));
  EXPECT_EQ(nlohmann::json::parse(config.entries[1]), nlohmann::json::parse(R"({"kind":"kafka"})"));
  EXPECT_EQ(configured(R"(--entry '{"kind":"amqp"}')").entries, std::vector<std::string>{R"({"kind":"amqp"})"});
  EXPECT_NE(complaint("", {}, "entry = \"x\"").find("[[entry]]"), std::string::npos);
  EXPECT_NE(complaint("", {}, "entry = [\"x\"]").find("[[entry]]"), std::string::npos);
}

TEST(Settings, AnUnknownKeyOfTheFileIsNamed) {
  EXPECT_NE(complaint("", {}, "nodename = \"a\"").find("'nodename'"), std::string::npos);
}

TEST(Settings, AKeyGivenInTwoSpellingsIsNamed) {
  EXPECT_NE(complaint("", {}, "node_name = \"a\"\nnode-name = \"b\"").find("given twice"), std::string::npos);
}

TEST(Settings, ABadValueNamesItsSource) {
  EXPECT_NE(complaint("", {{"TOCSIN_WORKERS", "many"}}).find("TOCSIN_WORKERS"), std::string::npos);
  EXPECT_NE(complaint("", {}, "workers = 0").find("'workers'"), std::string::npos);
  EXPECT_NE(complaint("", {}, "workers = 1.5").find("'workers'"), std::string::npos);
  EXPECT_NE(complaint("", {}, "listen = [\"a:1\", \"b:2\"]").find("takes one value"), std::string::npos);
  EXPECT_NE(complaint("", {}, "listen = ").find(":1: "), std::string::npos);
}

TEST(Settings, AMissingFileIsAnError) {
  EXPECT_NE(complaint("--config /nowhere/tocsin.toml").find("/nowhere/tocsin.toml"), std::string::npos);
}

TEST(Settings, AListenAddressNeedsItsPort) {
  for (const char* bad : {"localhost", ":7070", "a:99999", "a:7x"})
    EXPECT_NE(complaint(std::string("--listen ") + bad), "") << bad;
  EXPECT_EQ(configured("--listen [::1]:7070").listen, "[::1]:7070");
}

TEST(Retain, SetsDaysPerStatusAndKeepsTheOtherDefaults) {
  EXPECT_EQ(parse_retain("done=3d,dead=48h"), (std::map<std::string, int>{{"done", 3}, {"cancelled", 7}, {"dead", 2}}));
}

TEST(Retain, RefusesAllButWholeDaysOfFinalStatuses) {
  for (const char* bad : {"", "done", "done=", "done=7", "done=12h", "done=0d", "done=-1d", "pending=7d",
                          "done=7d,done=8d", "done=4000d", "done=7d,,"})
    EXPECT_THROW(parse_retain(bad), BadUsage) << bad;
}

}  // namespace
}  // namespace tocsin
