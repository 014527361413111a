// The codes that a session makes of the server's refusals. On PostgreSQL alone.
#include <gtest/gtest.h>

#include "postgres/pg_client_store.h"
#include "postgres/session.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class SessionError : public ::testing::Test {
 protected:
  Error error_of(const std::string& statement) {
    const Status status = session.write([&](pqxx::nontransaction& tx) { tx.exec(statement); });
    EXPECT_FALSE(status) << statement;
    return status ? Error{} : status.error();
  }
  ErrorCode code_of(const std::string& statement) { return error_of(statement).code; }
  // A function's refusal with the SQLSTATE of a check violation. `more`: further options of RAISE.
  ErrorCode code_of_check(const std::string& message, const std::string& more) {
    return code_of("DO $$ BEGIN RAISE check_violation USING MESSAGE = '" + message + "'" + more + "; END $$");
  }

  TestDatabase database{4};
  Session session{{database.url(), "errors"}};
};

// A warm-up that fails costs the connection, and the first request then waits for a new one.
TEST_F(SessionError, TheWarmUpOfRequestsSucceedsAndKeepsTheConnection) {
  PgClientStore client_store(session, 4);
  const Status warm = client_store.warm_up();
  EXPECT_TRUE(warm) << warm.error().message;
  EXPECT_EQ(session.connections(), 1U);
}

// Messages are in the language of the server's lc_messages.
TEST_F(SessionError, ARowWithoutAPartitionIsUnavailableInEveryLanguage) {
  database.query("CREATE TABLE public.days (day date) PARTITION BY RANGE (day)");
  EXPECT_EQ(code_of("INSERT INTO public.days VALUES ('2026-01-01')"), ErrorCode::unavailable);
  EXPECT_EQ(code_of_check("keine Partition von Relation >>days<< gefunden", ", SCHEMA = 'public', TABLE = 'days'"),
            ErrorCode::unavailable);
}

TEST_F(SessionError, ABrokenConstraintIsInvalidWhateverItsMessage) {
  database.query("CREATE TABLE public.checked (number int CONSTRAINT small CHECK (number < 5))");
  EXPECT_EQ(code_of("INSERT INTO public.checked VALUES (7)"), ErrorCode::invalid);
  EXPECT_EQ(code_of_check("no partition of relation", ", TABLE = 'checked', CONSTRAINT = 'small'"), ErrorCode::invalid);
  EXPECT_EQ(code_of_check("biz_id: must have 1 to 128 bytes", ""), ErrorCode::invalid);
}

// Messages of errors are logged, and a row has keys and attributes of jobs.
TEST_F(SessionError, TheMessageOfARefusedRowHasNoneOfItsValues) {
  database.query(
      "CREATE TABLE public.checked (key text UNIQUE, number int NOT NULL CONSTRAINT small CHECK (number < 5));"
      "INSERT INTO public.checked VALUES ('hidden', 1)");
  for (const auto& [row, reason] :
       {std::pair("'hidden 2', 7", "small"), {"'hidden 3', NULL", "null"}, {"'hidden', 2", "checked_key_key"}}) {
    const Error error = error_of("INSERT INTO public.checked SELECT " + std::string(row));
    EXPECT_NE(error.message.find(reason), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("hidden"), std::string::npos) << error.message;
  }
}

// libpqxx has an exception for them that carries no SQLSTATE.
TEST_F(SessionError, AFailedSerializationAndADeadlockAreConflicts) {
  for (const char* condition : {"serialization_failure", "deadlock_detected", "transaction_rollback"})
    EXPECT_EQ(code_of("DO $$ BEGIN RAISE " + std::string(condition) + "; END $$"), ErrorCode::conflict) << condition;
  EXPECT_EQ(session.connections(), 1U);
}

TEST_F(SessionError, ARefusalDoesNotAffectTheNextError) {
  database.query("CREATE TABLE public.days (day date) PARTITION BY RANGE (day)");
  EXPECT_EQ(code_of_check("biz_id: must have 1 to 128 bytes", ""), ErrorCode::invalid);
  EXPECT_EQ(code_of("INSERT INTO public.days VALUES ('2026-01-01')"), ErrorCode::unavailable);
  EXPECT_EQ(code_of_check("biz_id: must have 1 to 128 bytes", ""), ErrorCode::invalid);
}

// What duplicate_id() makes of a unique violation of this table and detail.
class DuplicateIdError : public SessionError {
 protected:
  std::optional<LastServerError::DuplicateId> duplicate(const std::string& schema, const std::string& table,
                                                        const std::string& detail) {
    code_of("DO $$ BEGIN RAISE unique_violation USING SCHEMA = '" + schema + "', TABLE = '" + table +
            "', CONSTRAINT = 'some_index', DETAIL = '" + detail + "'; END $$");
    return session.last_server_error().duplicate_id();
  }
};

TEST_F(DuplicateIdError, IsReadFromTheKeyInEveryLanguage) {
  const auto finished =
      duplicate("tocsin", "job_history_done_20260101", "Schluessel >>(job_id)=(4711)<< existiert bereits.");
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->job_id, 4711);
  EXPECT_TRUE(finished->is_in_history);
  const auto live = duplicate("tocsin", "job_live_0003", "Key (job_id)=(5) already exists.");
  ASSERT_TRUE(live);
  EXPECT_FALSE(live->is_in_history);
}

TEST_F(DuplicateIdError, IsNoneForOtherTablesAndIndexes) {
  EXPECT_FALSE(duplicate("shop", "job_live_0003", "Key (job_id)=(5) already exists."));
  EXPECT_FALSE(duplicate("tocsin", "outbox", "Key (job_id)=(5) already exists."));
  EXPECT_FALSE(duplicate("tocsin", "job_live_0003", "Key (biz_id, type_id)=((job_id)=(5), 1) already exists."));
  EXPECT_FALSE(duplicate("tocsin", "job_live_0003", ""));
}

}  // namespace
}  // namespace tocsin
