// Repairs ids that two jobs have, after a restore or a failover that set the id sequence back (ADR 0032). When a live
// job ends whose id a finished job in history has, the statement for the whole batch fails. The finished job then gets
// a fresh id (its errors say so), and the statement runs again. Thread: that of the session.
#pragma once

#include <span>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// Gives fresh ids to finished jobs whose id a live job has, of the ids in `jobs` and in the message of `error`. False:
// the error is another unique violation, or there is no such job.
bool free_ids(Session& session, pqxx::transaction_base& tx, const pqxx::unique_violation& error,
              std::span<const JobId> jobs);

// Runs `work`, a statement that moves jobs to history, and repeats it after ids were freed. `jobs`: the ids of the
// jobs, as far as the caller knows them. REQUIRES: each statement of `tx` is a transaction of its own.
template <class Work>
auto with_ids_freed(Session& session, pqxx::nontransaction& tx, std::span<const JobId> jobs, const Work& work) {
  constexpr int kMostRounds = 16;  // without `jobs`, each round frees one id
  for (int round = 1;; ++round) {
    try {
      return work();
    } catch (const pqxx::unique_violation& error) {
      if (round == kMostRounds || !free_ids(session, tx, error, jobs)) throw;
    }
  }
}

}  // namespace tocsin
