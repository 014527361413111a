#include "postgres/pg_job_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "ports/row_refusal.h"
#include "postgres/duplicate_ids.h"
#include "postgres/finish_arrays.h"
#include "postgres/job_rows.h"
#include "postgres/queries.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

constexpr Duration kSkipsLockedFor = std::chrono::seconds(5);

std::vector<JobId> ids_of(std::span<const Candidate> candidates) {
  std::vector<JobId> ids;
  ids.reserve(candidates.size());
  for (const Candidate& each : candidates) ids.push_back(each.job_id);
  return ids;
}

std::string types_of(std::span<const Candidate> candidates) {
  PgArray types;
  types.reserve(candidates.size() * 4);
  for (const Candidate& each : candidates) types.add(each.type_id);
  return types.literal();
}

// The statement for a batch: over one partition if all its jobs lie in it, else over tocsin.job_live.
const Statement& statement(Session& session, const char* verb, std::span<const JobId> jobs) {
  const int first = jobs.empty() ? -1 : sql::live_table_of(shard_of(jobs.front()));
  bool is_single = first >= 0;
  for (JobId id : jobs) is_single = is_single && sql::live_table_of(shard_of(id)) == first;
  if (!is_single) return session.prepared(verb, [=] { return sql::over(verb, sql::kLive); });
  return session.prepared(std::string(verb) + "_" + std::to_string(first),
                          [=] { return sql::over(verb, sql::live_table(first)); });
}

const Statement& lane_statement(Session& session, const char* verb, Lane lane) {
  const int table = sql::live_table_of(lane.shard);
  return session.prepared(std::string(verb) + "_" + std::to_string(table),
                          [=] { return sql::over(verb, sql::live_table(table)); });
}

// The synchronous_commit of a claim.
const char* commit_of(const ClaimTicket& ticket) { return ticket.is_durable ? "on" : "off"; }

// `has_due`: the rows have a column with the time when they were due before the claim.
std::vector<ClaimedJob> claimed_from(const pqxx::result& rows, bool has_due) {
  std::vector<ClaimedJob> claimed;
  claimed.reserve(rows.size());
  for (const auto& row : rows) {
    ClaimedJob job;
    job.job = job_from_row(row);
    job.token = row["claim_token"].as<ClaimToken>();
    if (has_due) job.fire_at_before = time_of(row["due"]);
    claimed.push_back(std::move(job));
  }
  return claimed;
}

std::vector<Fired> fired_from(const pqxx::result& rows) {
  std::vector<Fired> fired;
  fired.reserve(rows.size());
  for (const auto& row : rows)
    fired.push_back({row[0].as<JobId>(), row[1].as<TypeId>(), time_of(row[2]), time_of(row[3])});
  return fired;
}

}  // namespace

Result<ScanReply> PgJobStore::scan(std::span<const ScanRange> ranges, const LaneSearch& search, WriterMark mark) {
  PgArray shards, types, after, after_id, before, limits;
  for (const ScanRange& range : ranges) {
    shards.add(range.lane.shard);
    types.add(range.lane.type_id);
    after.add(range.after);
    after_id.add(range.after_id);
    before.add(range.before);
    limits.add(range.limit);
  }
  PgArray walk_shards, first_types, last_types;
  for (const LaneSearch::Walk& walk : search.walks) {
    walk_shards.add(walk.shard);
    first_types.add(walk.first);
    last_types.add(walk.last);
  }
  return session_.read<ScanReply>([&](pqxx::nontransaction& tx) {
    const Statement& name = session_.prepared("scan");
    ScanReply reply;
    reply.connection = session_.connections();
    reply.asked = clock_.now();
    const auto rows =
        exec(tx, name, shards.literal(), types.literal(), after.literal(), after_id.literal(), before.literal(),
             limits.literal(), walk_shards.literal(), first_types.literal(), last_types.literal(), to_pg(search.before),
             search.limit, search.most_bytes, mark == WriterMark::set);
    reply.answered = clock_.now();
    reply.rows.resize(ranges.size());
    for (const auto& row : rows) {
      const auto ordinal = row[0].as<std::int64_t>();
      if (ordinal == -2) {
        const auto lane = row[1].as<std::int64_t>();
        reply.lanes.push_back({static_cast<Shard>(lane % kMaxShards), static_cast<TypeId>(lane / kMaxShards)});
        continue;
      }
      if (ordinal == -3) {
        reply.walked = row[1].as<std::size_t>();
        continue;
      }
      const WallTime time = time_of(row[2]);
      if (ordinal <= 0) {
        (ordinal == 0 ? reply.db_now : reply.began) = time;
        (ordinal == 0 ? reply.oldest_writer : reply.next_writer) = row[1].as<std::int64_t>();
        continue;
      }
      const auto range = static_cast<std::size_t>(ordinal - 1);
      reply.rows[range].push_back({{row[1].as<JobId>(), ranges[range].lane.type_id, time}, row[3].as<bool>()});
    }
    return reply;
  });
}

// One seed for all parts: no job is in two of them, so no two claims have the same token.
Result<Claims> PgJobStore::claim(std::span<const Candidate> jobs, std::span<const Duration> ttr,
                                 const ClaimTicket& ticket) {
  TOCSIN_ASSERT(jobs.size() == ttr.size());
  const MonoTime asked = clock_.now();
  Claims claims;
  std::size_t begin = 0;
  do {
    const std::size_t size = std::min(claim_size_.most(), jobs.size() - begin);
    auto won = claim_together(jobs.subspan(begin, size), ttr.subspan(begin, size), ticket);
    if (won) {
      std::ranges::move(*won, std::back_inserter(claims.won));
      claim_size_.note_success();
      begin += size;
    } else if (is_refused_row(won.error())) {
      claim_size_.note_refused(size);
      if (size == 1) claims.refused.push_back({jobs[begin++].job_id, won.error()});
    } else {
      return claims.won.empty() ? won.error() : Error{ErrorCode::in_doubt, won.error().message, ""};
    }
  } while (begin < jobs.size() && clock_.now() - asked < limit_);
  claims.untried = jobs.size() - begin;
  return claims;
}

Result<std::vector<ClaimedJob>> PgJobStore::claim_together(std::span<const Candidate> jobs,
                                                           std::span<const Duration> ttr, const ClaimTicket& ticket) {
  PgArray ttrs;
  for (Duration length : ttr) ttrs.add(length.count());
  const auto ids = ids_of(jobs);
  const JobArrays keys(ids);
  return session_.write<std::vector<ClaimedJob>>([&](pqxx::nontransaction& tx) {
    const auto rows = exec(tx, statement(session_, "claim", ids), keys.shards.literal(), keys.jobs.literal(),
                           ttrs.literal(), ticket.seed, ticket.node, commit_of(ticket), types_of(jobs));
    TOCSIN_ASSERT(rows.size() <= jobs.size());
    return claimed_from(rows, /*has_due=*/true);
  });
}

Result<Claims> PgJobStore::claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket) {
  if (std::exchange(due_lane_, lane) != lane) due_size_ = {};  // another lane may have no refused row
  for (;;) {
    const std::size_t most = std::min(due_size_.most(), static_cast<std::size_t>(limit));
    auto won = claim_first(lane, span, static_cast<int>(most), ttr, ticket);
    if (won) {
      due_size_.note_success();
      Claims claims;
      claims.is_cut_short = won->size() == most && most < static_cast<std::size_t>(limit);
      claims.won = std::move(*won);
      return claims;
    }
    if (!is_refused_row(won.error())) return won.error();
    due_size_.note_refused(most);
    if (most == 1) return won.error();
  }
}

Result<std::vector<ClaimedJob>> PgJobStore::claim_first(Lane lane, DueSpan span, int limit, Duration ttr,
                                                        const ClaimTicket& ticket) {
  return session_.write<std::vector<ClaimedJob>>([&](pqxx::nontransaction& tx) {
    const auto rows =
        exec(tx, lane_statement(session_, "claim_due", lane), lane.shard, lane.type_id, to_pg(span.from),
             to_pg(span.to), limit, ttr.count(), ticket.seed, ticket.node, commit_of(ticket), span.after_id);
    TOCSIN_ASSERT(rows.size() <= static_cast<std::size_t>(limit));
    return claimed_from(rows, /*has_due=*/true);
  });
}

Result<std::vector<ClaimedJob>> PgJobStore::claimed_with(const ClaimTicket& ticket, std::span<const JobId> jobs) {
  const JobArrays keys(jobs);
  return session_.read<std::vector<ClaimedJob>>([&](pqxx::nontransaction& tx) {
    const Statement& name = statement(session_, "claimed_with", jobs);
    return claimed_from(exec(tx, name, keys.shards.literal(), keys.jobs.literal(), ticket.seed), /*has_due=*/false);
  });
}

Result<std::vector<ClaimedJob>> PgJobStore::claimed_with(const ClaimTicket& ticket, Lane lane) {
  return session_.read<std::vector<ClaimedJob>>([&](pqxx::nontransaction& tx) {
    return claimed_from(exec(tx, lane_statement(session_, "claimed_with_lane", lane), lane.shard, lane.type_id,
                             ticket.seed, to_pg(ticket.sent_after)),
                        /*has_due=*/false);
  });
}

Result<std::vector<Fired>> PgJobStore::fire(std::span<const Candidate> jobs, const std::string& node) {
  if (clock_.now() >= skips_locked_until_) {
    auto fired = fire_by("fire", jobs, node);
    if (fired || !is_contention(fired.error().code)) return fired;
    // A transaction that holds one of these rows may hold it for long: do not wait for it with every batch.
    skips_locked_until_ = clock_.now() + kSkipsLockedFor;
  }
  return fire_by("fire_skipping", jobs, node);
}

Result<std::vector<Fired>> PgJobStore::fire_by(const char* statement_name, std::span<const Candidate> jobs,
                                               const std::string& node) {
  const auto ids = ids_of(jobs);
  const JobArrays keys(ids);
  return session_.write<std::vector<Fired>>([&](pqxx::nontransaction& tx) {
    const auto rows = with_duplicate_ids_repaired(session_, tx, ids, [&] {
      return exec(tx, statement(session_, statement_name, ids), keys.shards.literal(), keys.jobs.literal(), node,
                  types_of(jobs));
    });
    TOCSIN_ASSERT(rows.size() <= jobs.size());
    return fired_from(rows);
  });
}

Result<std::vector<Fired>> PgJobStore::fire_due(Lane lane, DueSpan span, int limit, const std::string& node) {
  return session_.write<std::vector<Fired>>([&](pqxx::nontransaction& tx) {
    const auto rows = with_duplicate_ids_repaired(session_, tx, {}, [&] {
      return exec(tx, lane_statement(session_, "fire_due", lane), lane.shard, lane.type_id, to_pg(span.from),
                  to_pg(span.to), limit, node, span.after_id);
    });
    TOCSIN_ASSERT(rows.size() <= static_cast<std::size_t>(limit));
    return fired_from(rows);
  });
}

Result<std::vector<FinishReply>> PgJobStore::finish(std::span<const FinishRequest> requests, const std::string& node) {
  std::vector<JobId> ids;
  for (const FinishRequest& request : requests) ids.push_back(request.job_id);
  return session_.write<std::vector<FinishReply>>([&](pqxx::nontransaction& tx) {
    std::vector<FinishReply> replies(requests.size(), FinishReply::stale);
    const auto applied = with_duplicate_ids_repaired(
        session_, tx, ids, [&] { return FinishArrays(requests).exec(tx, statement(session_, "finish", ids), node); });
    for (const auto& row : applied) replies[row[0].as<std::size_t>() - 1] = FinishReply::applied;
    if (applied.size() == requests.size()) return replies;

    std::vector<std::size_t> open;
    LeaseArrays keys;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (replies[i] == FinishReply::applied) continue;
      open.push_back(i);
      keys.add(requests[i].job_id, requests[i].token);
    }
    const auto busy =
        exec(tx, session_.prepared("still_claimed"), keys.shards.literal(), keys.jobs.literal(), keys.tokens.literal());
    for (const auto& row : busy) replies[open[row[0].as<std::size_t>() - 1]] = FinishReply::busy;
    return replies;
  });
}

Result<std::vector<std::optional<Duration>>> PgJobStore::leases_left(std::span<const Lease> leases) {
  const LeaseArrays keys(leases);
  return session_.read<std::vector<std::optional<Duration>>>([&](pqxx::nontransaction& tx) {
    std::vector<std::optional<Duration>> left(leases.size());
    for (const auto& row :
         exec(tx, session_.prepared("leases_left"), keys.shards.literal(), keys.jobs.literal(), keys.tokens.literal()))
      left[row[0].as<std::size_t>() - 1] = Duration(std::max<std::int64_t>(0, row[1].as<std::int64_t>()));
    return left;
  });
}

Result<int> PgJobStore::mark_dead(std::span<const JobId> jobs) {
  const JobArrays keys(jobs);
  return session_.write<int>([&](pqxx::nontransaction& tx) {
    return with_duplicate_ids_repaired(session_, tx, jobs, [&] {
      return exec1(tx, session_.prepared("mark_dead"), keys.shards.literal(), keys.jobs.literal())[0].as<int>();
    });
  });
}

Result<int> PgJobStore::drop_too_late(Lane lane, WallTime before, int limit, int passed, const std::string& node) {
  return session_.write<int>([&](pqxx::nontransaction& tx) {
    return with_duplicate_ids_repaired(session_, tx, {}, [&] {
      return exec1(tx, lane_statement(session_, "drop_too_late", lane), lane.shard, lane.type_id, to_pg(before), limit,
                   node, passed)[0]
          .as<int>();
    });
  });
}

Status PgJobStore::warm_up() {
  const std::vector<JobId> none;
  if (auto reply = scan({}); !reply) return reply.error();
  if (auto reply = fire_by("fire", {}, ""); !reply) return reply.error();
  if (auto reply = fire_by("fire_skipping", {}, ""); !reply) return reply.error();
  if (auto reply = claim({}, {}, {}); !reply) return reply.error();
  if (auto reply = finish({}, ""); !reply) return reply.error();
  return Unit{};
}

}  // namespace tocsin
