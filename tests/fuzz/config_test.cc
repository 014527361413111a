// Configuration that is almost right, from a file and from variables: it is taken, or refused as bad usage that says
// where. Token files and tables of entry topics are part of it.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "api/auth.h"
#include "cli/config_file.h"
#include "cli/node_options.h"
#include "entry/broker_kinds.h"
#include "fuzz/mutator.h"
#include "support/temp_file.h"

namespace tocsin {
namespace {

const std::vector<std::string> kFiles = {
    "listen = \"127.0.0.1:0\"\nnode_name = \"a\"\nworkers = 9\nmigrate = true\nretain = \"done=1d\"\nshards = 16\n",
    "database = [\"a=postgresql://u:p@h:1,i:2/x\", \"b=postgresql://h/y\"]\ndrain-timeout = \"500ms\"\n",
    "[[entry]]\nkind = \"amqp\"\nurl = \"amqp://u:p@h/v\"\nqueue = \"a\\\"b\"\nprefetch = 5\n"
    "[[entry]]\nkind = \"kafka\"\nbootstrap_servers = \"h:1\"\ntopic = \"t\"\n",
    "[[token]]\nname = \"shop\"\nrole = \"producer\"\ntoken = \"0123456789abcdef\"\n",
};
const std::vector<std::string> kVariables = {"postgresql://a:1,b:2/x,c=postgres://c/y", "done=3d,dead=48h",
                                             "127.0.0.1:1", "10.0.0.0/8", "500ms"};
const std::vector<std::string> kConfigSpice = {
    "=",
    "\n",
    "[",
    "]",
    "[[",
    "\"",
    "'''",
    "\"\"\"",
    "{",
    "}",
    ",",
    ".",
    "#",
    "\\u0000",
    "\\U0010FFFF",
    "\\",
    "\xff",
    std::string(1, '\0'),
    "1979-05-27T07:32:00Z",
    "inf",
    "nan",
    "0x1F",
    "1_000",
    "99999999999999999999",
    "-1",
    "1e400",
    "true",
    std::string(2000, '['),
    "a.b.c",
    "url",
    "\"\xe2\x82\xac\"",
    "0.0.0.0/0",
    "d",
};

using Complaint = std::optional<std::string>;

// What is said about a file, and about each of some variables. Anything else that is thrown ends the test.
Complaint complaint_of(const std::string& file, const std::string& variable) {
  NodeConfig config;
  CLI::App app;
  add_node_options(app, config);
  const TempFile path("fuzz.toml", file);
  try {
    app.parse("--config " + path.path());
    apply_settings(app, [&](const std::string& name) -> std::optional<std::string> {
      const bool is_asked = name == "TOCSIN_DATABASE" || name == "TOCSIN_RETAIN" || name == "TOCSIN_LISTEN" ||
                            name == "TOCSIN_ALLOW_WEBHOOK" || name == "TOCSIN_DRAIN_TIMEOUT";
      return is_asked && !variable.empty() ? std::optional(variable) : std::nullopt;
    });
    for (std::size_t i = 0; i < config.entries.size(); ++i)
      if (const auto entry = parse_entry_topic(config.entries[i], i); !entry) return entry.error().message;
    check(config);
  } catch (const BadUsage& error) {
    return error.what();
  } catch (const CLI::Error& error) {
    return error.what();
  }
  return std::nullopt;
}

void try_config(std::uint64_t seed) {
  Mutator mutator(seed);
  const std::string file = mutator.mutate(mutator.any_of(kFiles), kConfigSpice);
  const std::string variable = mutator.below(2) == 0 ? "" : mutator.mutate(mutator.any_of(kVariables), kConfigSpice);
  const std::string what = "seed " + std::to_string(seed) + ": " + file + "\n" + variable;
  Complaint complaint;
  ASSERT_NO_THROW(complaint = complaint_of(file, variable)) << what;
  EXPECT_NE(complaint, "") << what;
  const auto tokens = Tokens::from_text(file);
  EXPECT_TRUE(tokens.ok() || !tokens.error().message.empty()) << what;
  std::string joined;
  for (const std::string& part : split_databases(variable)) joined += (joined.empty() ? "" : ",") + part;
  EXPECT_TRUE(joined == variable || variable.starts_with(',')) << what;
}

TEST(ConfigFuzz, AConfigurationIsAcceptedOrRefusedWithAReason) {
  const auto [first, last] = fuzz_seeds(5'000);
  for (std::uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) try_config(seed);
}

}  // namespace
}  // namespace tocsin
