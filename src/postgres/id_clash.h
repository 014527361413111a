// Ids that were given twice: after a restore, or after a failover that lost what a sequence had drawn. A live job that
// ends then meets a finished one with its id in history, and the statement for its whole batch fails. The record of the
// finished one gets a fresh id, which its errors say, and the statement runs again: no job is lost, no other job waits,
// and the id names the job that its last caller was told of.
// Thread: any.
#pragma once

#include <span>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// Frees the id that the error names, and those of `jobs` that are taken likewise. False: none of them was.
bool free_ids(Session& session, pqxx::transaction_base& tx, const pqxx::unique_violation& error,
              std::span<const JobId> jobs);

// Runs a statement that moves `jobs`, as far as they are known, to history; again when ids were freed. REQUIRES: each
// statement of `tx` is a transaction of its own.
template <class Work>
auto with_ids_freed(Session& session, pqxx::nontransaction& tx, std::span<const JobId> jobs, const Work& work) {
  constexpr int kMostRounds = 16;  // a statement that does not know its jobs frees one id a round
  for (int round = 1;; ++round) {
    try {
      return work();
    } catch (const pqxx::unique_violation& error) {
      if (round == kMostRounds || !free_ids(session, tx, error, jobs)) throw;
    }
  }
}

}  // namespace tocsin
