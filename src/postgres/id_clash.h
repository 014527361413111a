// Repairs ids that two jobs have, after a restore or a failover set the id sequence back. When a live job ends whose id
// a finished job in history has, the statement that moves its batch to history fails. The finished job then gets a
// fresh id (an entry in its errors says so), and the statement runs again. Used by all stores that end jobs. Thread:
// that of the session.
#pragma once

#include <span>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// After a unique violation: gives fresh ids to finished jobs whose id a live job has, of the ids in `jobs` and the one
// that the session's last refusal names, and calls SessionConfig::on_id_given_twice for each; raises the id sequence
// beyond all stored ids. REQUIRES: the failed transaction has ended. False: no job has changed, because something else
// than the id of a finished job was refused.
bool free_ids(Session& session, pqxx::transaction_base& tx, std::span<const JobId> jobs);

// Runs `work`, one statement in `tx` that moves jobs to history, and repeats it after ids were freed. `jobs`: the ids
// of the jobs, as far as the caller knows them.
template <class Work>
auto with_ids_freed(Session& session, pqxx::nontransaction& tx, std::span<const JobId> jobs, const Work& work) {
  constexpr int kMostRounds = 16;  // without `jobs`, each round frees one id
  for (int round = 1;; ++round) {
    try {
      return work();
    } catch (const pqxx::unique_violation&) {
      if (round == kMostRounds || !free_ids(session, tx, jobs)) throw;
    }
  }
}

}  // namespace tocsin
