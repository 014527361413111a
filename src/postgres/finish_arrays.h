// FinishArrays: the outcomes of attempts as parameters of the statement that writes them
// (sql/parts/finish_claimed.sql), one array per column. Used by PgJobStore, PgFunctionStore and PgClientStore. Thread:
// owner only (the session's).
#pragma once

#include <span>
#include <string>

#include "ports/job_store.h"
#include "postgres/session.h"
#include "postgres/text.h"

namespace tocsin {

class FinishArrays {
 public:
  explicit FinishArrays(std::span<const FinishRequest> requests) {
    for (const FinishRequest& request : requests) {
      shards_.add(shard_of(request.job_id));
      jobs_.add(request.job_id);
      tokens_.add(request.token);
      kinds_.add(kCodes[static_cast<std::size_t>(request.kind)]);
      delays_.add(request.delay.count());
      messages_.add_text(request.message);
    }
  }

  // Executes the statement. `node`: name of this node, for the errors in the jobs. Returns one row for each outcome
  // that was written: its ordinal in `requests`, from 1, and the job's type. An outcome without a row was not written:
  // its claim is stale, or the job's row is locked or write-frozen (its shard is moving).
  pqxx::result exec(pqxx::transaction_base& tx, const Statement& statement, const std::string& node) {
    return tocsin::exec(tx, statement, shards_.literal(), jobs_.literal(), tokens_.literal(), kinds_.literal(),
                        delays_.literal(), messages_.literal(), node);
  }

  // As exec(), with the statement's text instead of a prepared statement: a user's SQL function that ran in this
  // session may have replaced prepared statements.
  pqxx::result exec_unprepared(pqxx::transaction_base& tx, const std::string& sql, const std::string& node) {
    return tx.exec_params(sql, shards_.literal(), jobs_.literal(), tokens_.literal(), kinds_.literal(),
                          delays_.literal(), messages_.literal(), node);
  }

 private:
  // The codes of sql/parts/finish_claimed.sql, in the order of FinishRequest::Kind: the number of the job's new status,
  // or 1 to release the claim.
  static constexpr std::int64_t kCodes[] = {2, 4, 0, 1};

  PgArray shards_, jobs_, tokens_, kinds_, delays_, messages_;  // delays in microseconds
};

}  // namespace tocsin
