// What must hold of a configuration, from a file and from variables, whatever it says: it is taken, or refused as bad
// usage that says where. Token files and tables of entry topics are part of it.
#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/auth.h"
#include "cli/config_file.h"
#include "cli/node_options.h"
#include "entry/broker_kinds.h"
#include "support/temp_file.h"

namespace tocsin {

inline const std::vector<std::string> kConfigFiles = {
    "listen = \"127.0.0.1:0\"\nnode_name = \"a\"\nworkers = 9\nmigrate = true\nretain = \"done=1d\"\nshards = 16\n",
    "database = [\"a=postgresql://u:p@h:1,i:2/x\", \"b=postgresql://h/y\"]\ndrain-timeout = \"500ms\"\n",
    "[[entry]]\nkind = \"amqp\"\nurl = \"amqp://u:p@h/v\"\nqueue = \"a\\\"b\"\nprefetch = 5\n"
    "[[entry]]\nkind = \"kafka\"\nbootstrap_servers = \"h:1\"\ntopic = \"t\"\n",
    "[[token]]\nname = \"shop\"\nrole = \"producer\"\ntoken = \"0123456789abcdef\"\n",
};
inline const std::vector<std::string> kConfigVariables = {"postgresql://a:1,b:2/x,c=postgres://c/y", "done=3d,dead=48h",
                                                          "127.0.0.1:1", "10.0.0.0/8", "500ms"};
inline const std::vector<std::string> kConfigSpice = {
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
inline Complaint complaint_of(const std::string& file, const std::string& variable) {
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

// Fails unless the configuration, and the file as a token file, are taken or refused with a reason. `origin`: of both
// texts, for messages.
inline void check_config(const std::string& file, const std::string& variable, const std::string& origin) {
  const std::string what = origin + ": " + file + "\n" + variable;
  Complaint complaint;
  ASSERT_NO_THROW(complaint = complaint_of(file, variable)) << what;
  EXPECT_NE(complaint, "") << what;
  const auto tokens = Tokens::from_text(file);
  EXPECT_TRUE(tokens.ok() || !tokens.error().message.empty()) << what;
  std::string joined;
  for (const std::string& part : split_databases(variable)) joined += (joined.empty() ? "" : ",") + part;
  EXPECT_TRUE(joined == variable || variable.starts_with(',')) << what;
}

}  // namespace tocsin
