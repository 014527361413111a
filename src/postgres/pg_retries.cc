// PgClientStore: retries of dead jobs. By id: those that can be revived at once, and why the others cannot. Of a type:
// those that died first.
//
// To revive a job waits for a transaction that creates a job with its key, 5 ms at most (parts/revive.sql). PostgreSQL
// does not tell which key it was, so a call writes smaller parts until the key is alone.
#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <unordered_map>

#include "postgres/duplicate_ids.h"
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

// How often a call may wait 5 ms for a held key. Ten tries find one held key among 500 jobs.
constexpr int kMostKeyWaits = 10;         // of single retries, which share their thread with other changes
constexpr int kMostKeyWaitsOfType = 600;  // of a call of its own: 3 s

// Calls `write(begin, size)` for parts of `n` jobs, in their order: smaller ones where it meets contention, until the
// job that is the reason is alone and left out; larger ones again behind it. Returns how many jobs it has reached
// before `tries` parts had met a held lock, or the Error of a part, if it is no contention.
Result<std::size_t> write_in_parts(std::size_t n, int tries,
                                   const std::function<Status(std::size_t begin, std::size_t size)>& write) {
  std::size_t begin = 0;
  for (std::size_t size = n; begin < n && tries > 0;) {
    size = std::min(size, n - begin);
    const Status done = write(begin, size);
    if (done) {
      begin += size;
      size *= 2;
      continue;
    }
    const Error& error = done.error();
    if (!is_contention(error.code)) return error;
    if (error.field == kLocked) --tries;
    if (size == 1)
      ++begin;
    else
      size /= 2;
  }
  return begin;
}

}  // namespace

Status PgClientStore::revive(std::vector<JobId> jobs, Revived& revived) {
  if (jobs.empty()) return Unit{};
  std::rotate(jobs.begin(), std::ranges::lower_bound(jobs, next_revival_), jobs.end());
  const auto write = [&](std::size_t begin, std::size_t size) {
    const std::span<const JobId> part = std::span(jobs).subspan(begin, size);
    return session_.write([&](pqxx::nontransaction& tx) {
      const auto rows = with_duplicate_ids_repaired(
          session_, tx, part, [&] { return exec(tx, session_.prepared("retry"), array_of(part)); });
      for (const auto& row : rows) {
        Job job = job_from_row(row);
        revived.emplace(job.job_id, std::move(job));
      }
    });
  };
  const auto reached = write_in_parts(jobs.size(), kMostKeyWaits, write);
  if (!reached) return reached.error();
  if (*reached < jobs.size()) next_revival_ = jobs[*reached];
  return Unit{};  // those that are still dead are answered as locked
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

Result<int> PgClientStore::retry_many(const RetryMany& request) {
  struct Dead {
    JobId job_id;
    std::string finished_at;
  };
  const auto dead = session_.write<std::vector<Dead>>([&](pqxx::nontransaction& tx) {
    std::vector<Dead> found;
    for (const auto& row :
         exec(tx, session_.prepared("dead_of_type"), request.type_id, request.from ? to_pg(*request.from) : "-infinity",
              request.to ? to_pg(*request.to) : "infinity", request.limit))
      found.push_back({row[0].as<JobId>(), row[1].c_str()});
    return found;
  });
  if (!dead) return dead.error();
  const std::int64_t gap_us = request.rate_per_s ? static_cast<std::int64_t>(1e6 / *request.rate_per_s) : 0;
  int revived = 0;
  const auto write = [&](std::size_t begin, std::size_t size) {
    PgArray times, delays;
    std::vector<JobId> ids;
    for (std::size_t i = begin; i < begin + size; ++i) {
      ids.push_back((*dead)[i].job_id);
      times.add_text((*dead)[i].finished_at);
      delays.add(static_cast<std::int64_t>(i) * gap_us);
    }
    return session_.write([&](pqxx::nontransaction& tx) {
      const auto rows = with_duplicate_ids_repaired(session_, tx, ids, [&] {
        return exec(tx, session_.prepared("retry_many"), array_of(ids), times.literal(), delays.literal());
      });
      revived += static_cast<int>(rows.size());
    });
  };
  const auto reached = write_in_parts(dead->size(), kMostKeyWaitsOfType, write);
  if (reached) return revived;
  return revived == 0 ? reached.error() : Error{ErrorCode::in_doubt, reached.error().message, ""};
}

}  // namespace tocsin
