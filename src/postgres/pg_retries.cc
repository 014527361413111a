// PgClientStore: retries of dead jobs. By id: those that can be revived at once, and why the others cannot. Of a type:
// those that died first.
//
// To revive a job waits for a transaction that creates a job with its key (parts/revive.sql), kKeyLockWait at most. So
// does the wait for the tables, which CREATE INDEX locks.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <unordered_map>

#include "ports/row_refusal.h"
#include "postgres/duplicate_ids.h"
#include "postgres/job_rows.h"
#include "postgres/part_writer.h"
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

// The jobs that ids stand for, and the types whose removal is decided.
struct LookUp {
  std::unordered_map<JobId, Job> found;
  std::set<TypeId> removed;
};

constexpr int kMostKeyWaitsOfSingles = 10;  // they share their thread with other changes: 50 ms
// A call reads no further dead jobs of a type this long after the first: each time takes seconds if there are many.
constexpr auto kReadsOfType = std::chrono::seconds(3);

bool may_be_one_dead_job(const Error& error) { return is_contention(error.code) || is_refused_row(error); }

struct DeadJob {
  JobId job_id;
  std::string finished_at;
};

// Throws Busy while it is undecided whether the type is removed.
void require_decided(Session& session, pqxx::transaction_base& tx, TypeId type) {
  if (!exec(tx, session.prepared("removal_is_undecided"), type).empty())
    throw Busy("the removal of the type is undecided");
}

// The dead jobs of the type behind `last`, up to `limit` of them; of a removed type none. Throws Busy while it is
// undecided whether the type is removed. That is asked after the rows are read: the removal may come in between.
std::vector<DeadJob> read_dead(Session& session, pqxx::transaction_base& tx, const ClientStore::RetryMany& request,
                               const DeadJob& last, int limit) {
  std::vector<DeadJob> dead;
  for (const auto& row : exec(tx, session.prepared("dead_of_type"), request.type_id, last.finished_at,
                              request.to ? to_pg(*request.to) : "infinity", limit, last.job_id))
    dead.push_back({row[0].as<JobId>(), row[1].c_str()});
  require_decided(session, tx, request.type_id);
  return dead;
}

}  // namespace

struct PgClientStore::Revival {
  PartWriter parts{may_be_one_dead_job, kMostKeyWaitsOfSingles, kMostRefusedInARow};
  std::unordered_map<JobId, Job> revived;
  std::unordered_map<JobId, Error> refused;
};

Result<pqxx::result> PgClientStore::revive_part(std::span<const JobId> ids,
                                                const std::function<pqxx::result(pqxx::work&)>& statement) {
  const auto work = [&](pqxx::work& tx) {
    exec(tx, session_.prepared("lock_wait"), kKeyLockWait);
    return statement(tx);
  };
  return with_freed_ids(session_, ids, [&] { return session_.transact<pqxx::result>(work); });
}

Status PgClientStore::revive(std::vector<JobId> jobs, Revival& revival) {
  if (jobs.empty()) return Unit{};
  std::rotate(jobs.begin(), std::ranges::lower_bound(jobs, next_revival_), jobs.end());
  const auto write = [&](std::size_t begin, std::size_t size) -> Result<bool> {
    const std::span<const JobId> part = std::span(jobs).subspan(begin, size);
    const auto rows =
        revive_part(part, [&](pqxx::work& tx) { return exec(tx, session_.prepared("retry"), array_of(part)); });
    if (!rows) return rows.error();
    for (const auto& row : *rows) {
      Job job = job_from_row(row);
      revival.revived.emplace(job.job_id, std::move(job));
    }
    return !rows->empty();
  };
  const auto leave_out = [&](std::size_t i, const Error& why) {
    if (!is_contention(why.code)) revival.refused.emplace(jobs[i], why);
  };
  const auto reached = revival.parts.write(jobs.size(), write, leave_out);
  if (!reached) return reached.error();
  if (*reached < jobs.size()) next_revival_ = jobs[*reached];
  return Unit{};  // those that are still dead and were not refused are answered as locked
}

Result<std::vector<Result<ChangeReply>>> PgClientStore::retry_each(std::span<const JobId> jobs) {
  Revival revival;
  const std::set<JobId> asked(jobs.begin(), jobs.end());
  if (auto done = revive(std::vector(asked.begin(), asked.end()), revival); !done) return done.error();

  // The others are looked up for their answers; an id that stands for another job revives that one.
  std::vector<JobId> rest;
  std::ranges::copy_if(asked, std::back_inserter(rest), [&](JobId id) { return !revival.revived.contains(id); });
  LookUp now;
  if (!rest.empty()) {
    auto looked_up = session_.read<LookUp>([&](pqxx::nontransaction& tx) {
      LookUp seen{find_jobs(session_, tx, rest), {}};
      for (const auto& row : exec(tx, session_.prepared("removed_types"))) seen.removed.insert(row[0].as<TypeId>());
      return seen;
    });
    if (looked_up)
      now = std::move(*looked_up);
    else
      for (const JobId id : rest) revival.refused.emplace(id, looked_up.error());
  }
  std::set<JobId> existing;
  for (const auto& [id, job] : now.found)
    if (job.job_id != id && job.status == JobStatus::dead) existing.insert(job.job_id);
  if (auto done = revive(std::vector(existing.begin(), existing.end()), revival); !done) return done.error();

  std::vector<Result<ChangeReply>> replies(jobs.size(), ChangeReply{});
  std::set<JobId> told;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto at = now.found.find(jobs[i]);
    const JobId id = at == now.found.end() ? jobs[i] : at->second.job_id;
    if (const auto it = revival.revived.find(id); it != revival.revived.end()) {
      const bool is_first = told.insert(id).second;
      replies[i] = ChangeReply{is_first ? ChangeReply::Kind::changed : ChangeReply::Kind::pending, it->second};
    } else if (const auto why = revival.refused.find(id); why != revival.refused.end()) {
      replies[i] = why->second;
    } else if (at != now.found.end()) {
      ChangeReply reply = unchanged(at->second);
      if (at->second.status == JobStatus::dead)
        reply.kind =
            now.removed.contains(at->second.type_id) ? ChangeReply::Kind::type_removed : ChangeReply::Kind::locked;
      replies[i] = std::move(reply);
    }
  }
  return replies;
}

Result<int> PgClientStore::retry_many(const RetryMany& request) {
  const std::int64_t gap_us = request.rate_per_s ? static_cast<std::int64_t>(1e6 / *request.rate_per_s) : 0;
  PartWriter parts(may_be_one_dead_job, kMostKeyWaits, kMostRefusedInARow);
  int revived = 0;
  std::optional<Error> left_out, refused;
  const auto until = std::chrono::steady_clock::now() + kReadsOfType;
  DeadJob last{0, request.from ? to_pg(*request.from) : "-infinity"};
  do {
    const int wanted = request.limit - revived;
    const auto dead = session_.write<std::vector<DeadJob>>(
        [&](pqxx::nontransaction& tx) { return read_dead(session_, tx, request, last, wanted); });
    if (!dead) return parts.failure(dead.error());
    const auto write = [&](std::size_t begin, std::size_t size) -> Result<bool> {
      PgArray times, delays;
      std::vector<JobId> ids;
      for (const DeadJob& job : std::span(*dead).subspan(begin, size)) {
        delays.add((revived + static_cast<std::int64_t>(ids.size())) * gap_us);
        ids.push_back(job.job_id);
        times.add_text(job.finished_at);
      }
      const auto rows = revive_part(ids, [&](pqxx::work& tx) {
        auto done = exec(tx, session_.prepared("retry_many"), array_of(ids), times.literal(), delays.literal());
        if (done.empty()) require_decided(session_, tx, request.type_id);
        return done;
      });
      if (!rows) return rows.error();
      revived += static_cast<int>(rows->size());
      return !rows->empty();
    };
    const auto leave_out = [&](std::size_t, const Error& why) {
      left_out = why;
      if (!is_contention(why.code)) refused = why;
    };
    const auto reached = parts.write(dead->size(), write, leave_out);
    if (!reached) return reached.error();
    if (*reached < dead->size() || dead->size() < static_cast<std::size_t>(wanted)) break;
    last = dead->back();
  } while (revived < request.limit && std::chrono::steady_clock::now() < until);
  if (refused && session_.config().on_refused_retry) session_.config().on_refused_retry(*refused);
  if (revived == 0 && left_out) return *left_out;
  return revived;
}

}  // namespace tocsin
