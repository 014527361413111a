// FinishArrays: the parameters of sql/parts/finish_claimed.sql, outcomes as one array per column.
#pragma once

#include <span>
#include <string>

#include "ports/job_store.h"
#include "postgres/session.h"
#include "postgres/text.h"

namespace tocsin {

// Thread: owner only.
class FinishArrays {
 public:
  explicit FinishArrays(std::span<const FinishRequest> requests) {
    for (const FinishRequest& request : requests) {
      shards_.add(shard_of(request.job_id));
      jobs_.add(request.job_id);
      tokens_.add(request.token);
      kinds_.add(code_of(request.kind));
      delays_.add(request.delay.count());
      messages_.add_text(request.message);
    }
  }

  // Runs the statement. Returns a row per outcome that was applied: its ordinal in `requests`, from 1.
  pqxx::result exec(pqxx::transaction_base& tx, const Statement& statement, const std::string& node) {
    return tocsin::exec(tx, statement, shards_.literal(), jobs_.literal(), tokens_.literal(), kinds_.literal(),
                        delays_.literal(), messages_.literal(), node);
  }

  // The same without preparing it: a SQL function that ran in this session may have touched prepared statements.
  pqxx::result exec_unprepared(pqxx::transaction_base& tx, const std::string& sql, const std::string& node) {
    return tx.exec_params(sql, shards_.literal(), jobs_.literal(), tokens_.literal(), kinds_.literal(),
                          delays_.literal(), messages_.literal(), node);
  }

 private:
  // As finish_claimed.sql knows them.
  static std::int64_t code_of(FinishRequest::Kind kind) {
    switch (kind) {
      case FinishRequest::Kind::done:
        return 2;
      case FinishRequest::Kind::dead:
        return 4;
      case FinishRequest::Kind::retry:
        return 0;
      case FinishRequest::Kind::release_claim:
        return 1;
    }
    return -1;
  }

  PgArray shards_, jobs_, tokens_, kinds_, delays_, messages_;
};

}  // namespace tocsin
