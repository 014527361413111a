// Callers: the callers of a simulated cluster. They create, cancel, reschedule and retry jobs, by REST (the nodes get a
// hint of the job) or by SQL (no hint). Made by World. A "prompt" type has no limit and is not a pull type: its jobs
// must fire on time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulation/sim_node.h"

namespace tocsin {

// Thread: owner only.
class Callers {
 public:
  // `prompt`: the prompt types among `types`. `lookahead`: of the nodes' scans; jobs due later need no hint.
  Callers(SimContext& world, std::vector<SimNode*> nodes, std::vector<TypeId> types, std::vector<TypeId> prompt,
          Duration lookahead);

  // Starts `n` callers, which act until `end`.
  void begin(int n, MonoTime end);
  // Cancels these jobs, `in` from now.
  void cancel_later(std::vector<JobId> jobs, Duration in);
  // For the calm, when no fault happens: creates `n` prompt jobs in any database but `away`. Each must fire within
  // `on_time` or, if only a scan can find it, within `scan_interval` + `on_time`.
  void probe(int n, Duration on_time, Duration scan_interval, std::optional<DatabaseId> away = {});
  // A transaction begins now and commits a prompt job `age` later, without notification. The transaction gets its id
  // `id_delay` after it read its clock. The job, due at once, must fire within `bound` after the commit.
  void commit_late(Duration age, Duration bound, Duration id_delay = Duration(0));
  // Commits a prompt job that is due `in` from now, without notification: a scan finds it in time, and it must fire
  // within `on_time`.
  void commit_ahead(Duration in, Duration on_time);
  // Creates `n` jobs that are due now. Without `type` and `database_id`: of any type, in any database.
  void rush(int n, std::optional<TypeId> type = {}, std::optional<DatabaseId> database_id = {});
  // Creates `n` jobs of this type that are due `from_now`.
  void rush_at(Duration from_now, int n, TypeId type);
  // Creates a job that is due `from_now` without a hint: a scan finds it.
  JobId create_unheard_at(Duration from_now, TypeId type);
  // Creates a prompt job that was due `age` ago; its node gets a hint.
  void create_overdue(Duration age, DatabaseId database_id);
  JobId create_at(Duration from_now, TypeId type);  // its node gets a hint at once
  JobId create_now(std::optional<TypeId> type, std::optional<DatabaseId> database_id);

 private:
  void act(int session);
  void create(int session);
  void cancel(int session);
  void change(int session);
  void repair(int session);
  // A SQL transaction of several statements: it stays open for a while, and is committed or not.
  void run_business();
  // Calls `work` with a session with this database. Error in_doubt: a crash or a failover happened meanwhile.
  template <class Work>
  auto ask(DatabaseId database_id, int session, Work work);
  SimDatabase& database_of(const NewJob& job);
  NewJob any_job();
  NewJob any_prompt_job(std::optional<DatabaseId> away = {});
  NewJob any_job_in(std::optional<DatabaseId> database_id, std::optional<DatabaseId> away);  // no idempotency key
  When any_time(const SimDatabase& database);
  CreateReply commit(const NewJob& job, Duration age);
  void note_created(const NewJob& asked, const CreateReply& reply, bool is_rest);
  void note_cancelled(const Result<std::vector<CancelReply>>& replies);
  void cancel_these(const std::vector<JobId>& jobs, int session);
  JobId any_known();
  void hint(const Candidate& job);
  void notify(DatabaseId database_id);

  SimContext& world_;
  std::vector<SimNode*> nodes_;
  const std::vector<TypeId> types_, prompt_;
  const Duration lookahead_;
  std::vector<JobId> known_;  // created, with an answer
  int last_biz_ = 0;
};

}  // namespace tocsin
