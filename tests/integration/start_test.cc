// A node that cannot start says why, in one line, and does not linger.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/node_process.h"
#include "support/server.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class Start : public ::testing::Test {
 protected:
  // What a node says that is started like this.
  static Ran serve(std::vector<std::string> options) {
    options.insert(options.begin(), "serve");
    return run_tocsin(options);
  }
  static void expect_refusal(const Ran& ran, const std::vector<std::string>& words) {
    EXPECT_EQ(ran.exit_code, 1) << ran.err;
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
    EXPECT_TRUE(ran.err.starts_with("tocsin: ")) << ran.err;
    for (const std::string& word : words)
      EXPECT_NE(ran.err.find(word), std::string::npos) << word << " is not in: " << ran.err;
  }
  static std::string file_with(const std::string& text) {
    static int n = 0;
    const std::string path = required_env("TOCSIN_TEST_DIR") + "/tokens-" + std::to_string(++n);
    std::ofstream(path) << text;
    return path;
  }

  TestDatabase database{8};
};

TEST_F(Start, WithoutAnyDatabaseIsBadUsage) {
  const Ran ran = serve({"--listen", "127.0.0.1:0"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("--database"), std::string::npos) << ran.err;
}

TEST_F(Start, WithAnUnknownOptionIsBadUsage) {
  EXPECT_EQ(serve({"--database", database.url(), "--frobnicate"}).exit_code, 2);
  EXPECT_EQ(run_tocsin({"frobnicate"}).exit_code, 2);
  EXPECT_EQ(serve({"--database", database.url(), "--listen", "nowhere"}).exit_code, 2);
}

TEST_F(Start, FailsWithoutAServerThere) {
  expect_refusal(serve({"--database", "postgresql://bob:s3cret@127.0.0.1:1/tocsin", "--listen", "127.0.0.1:0"}),
                 {"127.0.0.1:1/tocsin"});
}

TEST_F(Start, FailsWithAnInvalidUrl) {
  expect_refusal(serve({"--database", "no url at all", "--listen", "127.0.0.1:0"}), {"database"});
}

TEST_F(Start, FailsWithARoleThatDoesNotExist) {
  std::string url = database.url();
  url.replace(url.find("postgres@"), 8, "nobody:s3cret");
  const Ran ran = serve({"--database", url, "--listen", "127.0.0.1:0"});
  expect_refusal(ran, {"nobody"});
  EXPECT_EQ(ran.err.find("s3cret"), std::string::npos) << ran.err;
}

TEST_F(Start, FailsWithADatabaseThatDoesNotExist) {
  expect_refusal(serve({"--database", database.url() + "_not", "--listen", "127.0.0.1:0"}), {"does not exist"});
}

TEST_F(Start, FailsWhenItsPortIsTaken) {
  NodeProcess node(database.url());
  const std::string address = "127.0.0.1:" + std::to_string(node.port());
  database.query(
      "CREATE TABLE public.joined (id bigint); CREATE FUNCTION public.note_node() RETURNS trigger LANGUAGE plpgsql AS"
      " $$ BEGIN INSERT INTO public.joined VALUES (new.node_id); RETURN new; END $$; CREATE TRIGGER note BEFORE INSERT"
      " ON tocsin.node FOR EACH ROW WHEN (new.node_id <> " +
      database.query("SELECT node_id FROM tocsin.node")[0][0].as<std::string>() +
      ") EXECUTE FUNCTION public.note_node()");
  const Ran ran = serve({"--database", database.url(), "--listen", address});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.err.find(address), std::string::npos) << ran.err;
  EXPECT_TRUE(node.is_ready()) << "the first is not disturbed";
  EXPECT_EQ(database.number("SELECT count(*) FROM public.joined"), 0) << "it never was a member";
}

TEST_F(Start, FailsWithATokenFileThatIsMissingEmptyOrWrong) {
  const auto with = [&](const std::string& path) {
    return serve({"--database", database.url(), "--listen", "127.0.0.1:0", "--token-file", path});
  };
  expect_refusal(with("/nonexistent/tokens.toml"), {"token_file", "/nonexistent/tokens.toml"});
  expect_refusal(with(file_with("")), {"token_file"});
  expect_refusal(with(file_with("[[token")), {"token_file"});
  expect_refusal(with(file_with("[[token]]\nname = 'a'\nrole = 'king'\ntoken = '0123456789abcdef'\n")),
                 {"token_file", "role"});
  const Ran secret = with(file_with("[[token]]\nname = 'a'\nrole = 'admin'\ntoken = 'tooshort'\n"));
  expect_refusal(secret, {"token_file", "16"});
  EXPECT_EQ(secret.err.find("tooshort"), std::string::npos) << "a secret in a log";
}

TEST_F(Start, WithoutTokensServesThisMachineOnly) {
  expect_refusal(serve({"--database", database.url(), "--listen", "0.0.0.0:0"}), {"listen", "--token-file"});
}

TEST_F(Start, FailsWithAnotherShardCountThanTheInstallation) {
  expect_refusal(serve({"--database", database.url(), "--listen", "127.0.0.1:0", "--shards", "4"}),
                 {"8 shards", "says 4", "never changes"});
}

TEST_F(Start, FailsWithADatabaseThatIsNamedTwice) {
  expect_refusal(serve({"--database", database.url(), "--database", database.url(), "--listen", "127.0.0.1:0"}),
                 {"the same database", "name it once"});
}

// A server that loses acknowledged jobs is refused, one that loses only what SQL callers write is warned of: their
// sessions may set synchronous_commit themselves, fsync they may not.
TEST_F(Start, FailsOnAServerThatDoesNotWriteToItsDiskAndOnAStandby) {
  PrivateCluster server;
  ASSERT_EQ(run_tocsin({"migrate", "--database", server.url(), "--shards", "4"}).exit_code, 0);
  const auto refused = [&] { return serve({"--database", server.url(), "--listen", "127.0.0.1:0"}); };
  execute(server.url(), "ALTER SYSTEM SET fsync = off");
  server.crash();
  server.start();
  expect_refusal(refused(), {"fsync = off", "lose acknowledged jobs"});
  execute(server.url(), "ALTER SYSTEM RESET fsync");
  execute(server.url(), "COPY (SELECT 1) TO PROGRAM 'cat > standby.signal'");
  server.crash();
  server.start();
  expect_refusal(refused(), {"standby", "primary"});
}

TEST_F(Start, AMigrationThatCannotReachItsDatabaseFailsInOneLine) {
  const Ran ran = run_tocsin({"migrate", "--database", "postgresql://bob:s3cret@127.0.0.1:1/tocsin"});
  expect_refusal(ran, {"127.0.0.1:1/tocsin"});
  EXPECT_EQ(ran.err.find("s3cret"), std::string::npos);
}

}  // namespace
}  // namespace tocsin
