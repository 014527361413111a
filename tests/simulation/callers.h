// The outside of a simulated cluster: businesses that create, cancel and change jobs, by REST (the node hears of it) or
// by SQL.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulation/sim_node.h"

namespace tocsin {

// Thread: owner only.
class Callers {
 public:
  // `prompt`: those of the types whose jobs nothing holds back.
  Callers(SimContext& world, std::vector<SimNode*> nodes, std::vector<TypeId> types, std::vector<TypeId> prompt,
          Duration lookahead);

  // `n` callers that act until `end`.
  void begin(int n, MonoTime end);
  // Somebody cancels these jobs, `in` from now.
  void cancel_later(std::vector<JobId> jobs, Duration in);
  // In the calm: jobs that must fire on time, in any database but `away`.
  void probe(int n, Duration on_time, Duration scan_interval, std::optional<DatabaseId> away = {});
  // A transaction begins now and commits `age` later without a notification: its job must fire within `bound` then. It
  // has an id `id_delay` after it read its clock.
  void commit_late(Duration age, Duration bound, Duration id_delay = Duration(0));
  // Likewise, in good time: the scanner finds it before it is due.
  void commit_ahead(Duration in, Duration on_time);
  // Many jobs that are due now; of one type, or of all; in one database, or in all.
  void rush(int n, std::optional<TypeId> type = {}, std::optional<DatabaseId> database_id = {});
  // Jobs that were due so long ago, of types that nothing holds back; their nodes hear of them.
  // Due so long from now.
  void rush_at(Duration from_now, int n, TypeId type);
  JobId create_unheard_at(Duration from_now, TypeId type);  // no node hears of it: a scan finds it
  void create_overdue(Duration age, DatabaseId database_id);
  JobId create_at(Duration from_now, TypeId type);  // known to its owner at once
  JobId create_now(std::optional<TypeId> type, std::optional<DatabaseId> database_id);

 private:
  void act(int session);
  void create(int session);
  void cancel(int session);
  void change(int session);
  void repair(int session);
  // Several statements in one transaction, which stays open for a while and is committed or not.
  void run_business();
  // Calls `work` with a session to that database; its answer is dropped when a standby has taken over meanwhile.
  template <class Work>
  auto ask(DatabaseId database_id, int session, Work work);
  SimDatabase& database_of(const NewJob& job);
  NewJob any_job();
  NewJob any_prompt_job(std::optional<DatabaseId> away = {});
  NewJob any_job_in(std::optional<DatabaseId> database_id, std::optional<DatabaseId> away);  // without a key
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
  std::vector<JobId> known_;  // acknowledged
  int last_biz_ = 0;
};

}  // namespace tocsin
