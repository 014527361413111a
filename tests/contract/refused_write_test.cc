// What a session makes of errors that the server answers for a write. On PostgreSQL alone: they are its codes.
#include <gtest/gtest.h>

#include "ports/row_refusal.h"
#include "postgres/session.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

class RefusedWrite : public testing::Test {
 protected:
  Error answer_to(const std::string& state) {
    const Status done = session.write([&](pqxx::nontransaction& tx) {
      tx.exec0("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '" + state + "'; END $$");
    });
    return done ? Error{ErrorCode::invalid, "it was written", ""} : done.error();
  }

  TestDatabase database;
  Session session{SessionConfig{database.url()}};
};

// Damaged pages, triggers and rights may concern one row or the table of one day.
TEST_F(RefusedWrite, MayBeARowErrorAndIsNotFinal) {
  for (const char* state : {"XX000", "XX001", "XX002", "P0001", "42501"}) {
    const Error error = answer_to(state);
    EXPECT_EQ(error.code, ErrorCode::unavailable) << state;
    EXPECT_TRUE(is_refused_row(error)) << state;
    EXPECT_EQ(session.connections(), 1U) << "the session is sound after " << state;
  }
}

TEST_F(RefusedWrite, OfTheWholeServerIsNoRowError) {
  for (const char* state : {"53100", "57014", "25006"}) EXPECT_FALSE(is_row_error(answer_to(state))) << state;
}

}  // namespace
}  // namespace tocsin
