// Repairs ids that two jobs have. After a restore or a failover the id sequence may give an id again, so that a live
// job and a finished job in history have the same one. When the live job ends, the statement that moves it and its
// batch to history violates a unique index. The finished job then gets a fresh id (an entry in its errors says so), and
// the statement runs again. The same when a dead job is to live again while a live job has its id. Used by all stores
// that end or revive jobs. Thread: that of the session.
#pragma once

#include <span>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// Called after a unique violation. The candidates are `jobs` and the id in the session's last error. Each finished job
// among them whose id a live job has gets a fresh id, and SessionConfig::on_duplicate_id is called for it. The id
// sequence is raised above all stored ids. REQUIRES: the failed transaction has ended. False: no job has changed,
// because the violation is not about the id of a finished job.
bool renumber_finished_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> jobs);

// The same after the Error of a call that moves `jobs`. True: the call may succeed now.
bool has_freed_ids(Session& session, const Error& error, std::span<const JobId> jobs);

constexpr int kMostRepairs = 16;  // where the caller does not know the ids, each frees one

// Runs `call`, which moves `jobs` and returns a Status or Result, and repeats it after finished jobs got fresh ids.
template <class Call>
auto with_freed_ids(Session& session, std::span<const JobId> jobs, const Call& call) {
  auto done = call();
  for (int repairs = 1; repairs < kMostRepairs && !done && has_freed_ids(session, done.error(), jobs); ++repairs)
    done = call();
  return done;
}

// Runs `work`, one statement in `tx` that moves jobs to or from history, and repeats it after finished jobs got fresh
// ids. `jobs`: the ids of the moved jobs, as far as the caller knows them.
template <class Work>
auto with_duplicate_ids_repaired(Session& session, pqxx::nontransaction& tx, std::span<const JobId> jobs,
                                 const Work& work) {
  for (int round = 1;; ++round) {
    try {
      return work();
    } catch (const pqxx::unique_violation&) {
      if (round == kMostRepairs || !renumber_finished_jobs(session, tx, jobs)) throw;
    }
  }
}

}  // namespace tocsin
