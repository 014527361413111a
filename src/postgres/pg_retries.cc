// PgClientStore: retries of dead jobs by id: those that can be revived at once, and why the others cannot.
#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>

#include "postgres/job_rows.h"
#include "postgres/pg_client_store.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

ChangeReply unchanged(const Job& now) {
  ChangeReply::Kind kind = ChangeReply::Kind::pending;
  if (now.status == JobStatus::running) kind = ChangeReply::Kind::running;
  if (is_final(now.status)) kind = ChangeReply::Kind::finished;
  return {kind, now};
}

// The jobs that ids stand for, and the types that were removed.
struct LookUp {
  std::unordered_map<JobId, Job> found;
  std::set<TypeId> removed;
};

}  // namespace

Status PgClientStore::revive(std::span<const JobId> jobs, Revived& revived) {
  if (jobs.empty()) return Unit{};
  const Status done = session_.write([&](pqxx::nontransaction& tx) {
    for (const auto& row : exec(tx, session_.prepared("retry"), array_of(jobs))) {
      Job job = job_from_row(row);
      revived.emplace(job.job_id, std::move(job));
    }
  });
  if (done || !is_contention(done.error().code)) return done;
  if (jobs.size() == 1) return Unit{};  // still dead: answered as locked
  if (Status first = revive(jobs.first(jobs.size() / 2), revived); !first) return first;
  return revive(jobs.subspan(jobs.size() / 2), revived);
}

Result<std::vector<ChangeReply>> PgClientStore::retry_each(std::span<const JobId> jobs) {
  Revived revived;
  const auto failed = [&revived](const Error& error) {  // written retries stay
    return revived.empty() ? error : Error{ErrorCode::in_doubt, error.message, ""};
  };
  const std::set<JobId> asked(jobs.begin(), jobs.end());
  if (auto done = revive(std::vector(asked.begin(), asked.end()), revived); !done) return failed(done.error());

  // The others are looked up for their answers; an id that stands for another job revives that one.
  std::vector<JobId> rest;
  std::ranges::copy_if(asked, std::back_inserter(rest), [&](JobId id) { return !revived.contains(id); });
  LookUp now;
  if (!rest.empty()) {
    auto looked_up = session_.read<LookUp>([&](pqxx::nontransaction& tx) {
      LookUp seen{find_jobs(session_, tx, rest), {}};
      for (const auto& row : tx.exec("SELECT type_id FROM tocsin.biz_type WHERE removed_at IS NOT NULL"))
        seen.removed.insert(row[0].as<TypeId>());
      return seen;
    });
    if (!looked_up) return failed(looked_up.error());
    now = std::move(*looked_up);
  }
  std::set<JobId> existing;
  for (const auto& [id, job] : now.found)
    if (job.job_id != id && job.status == JobStatus::dead) existing.insert(job.job_id);
  if (auto done = revive(std::vector(existing.begin(), existing.end()), revived); !done) return failed(done.error());

  std::vector<ChangeReply> replies(jobs.size());
  std::set<JobId> told;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto at = now.found.find(jobs[i]);
    const JobId id = at == now.found.end() ? jobs[i] : at->second.job_id;
    if (const auto it = revived.find(id); it != revived.end()) {
      const bool is_first = told.insert(id).second;
      replies[i] = {is_first ? ChangeReply::Kind::changed : ChangeReply::Kind::pending, it->second};
    } else if (at != now.found.end()) {
      replies[i] = unchanged(at->second);
      if (at->second.status == JobStatus::dead)
        replies[i].kind =
            now.removed.contains(at->second.type_id) ? ChangeReply::Kind::type_removed : ChangeReply::Kind::locked;
    }
  }
  return replies;
}

}  // namespace tocsin
