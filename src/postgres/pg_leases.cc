// What consumers say of the jobs they leased, on PostgreSQL.
#include <algorithm>
#include <numeric>

#include "base/assert.h"
#include "postgres/finish_arrays.h"
#include "postgres/pg_job_desk.h"
#include "postgres/queries.h"

namespace tocsin {
namespace {

struct LeaseArrays {
  explicit LeaseArrays(std::span<const Lease> leases) {
    for (const Lease& lease : leases) {
      shards.add(shard_of(lease.job_id));
      jobs.add(lease.job_id);
      tokens.add(lease.token);
    }
  }
  PgArray shards, jobs, tokens;
};

}  // namespace

Result<std::vector<std::optional<LeasedJob>>> PgJobDesk::leased(std::span<const Lease> leases) {
  using Reply = std::vector<std::optional<LeasedJob>>;
  return session_.read<Reply>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    LeaseArrays keys(leases);
    Reply reply(leases.size());
    for (const auto& row : exec(tx, session_.prepared("leased", sql::leased), keys.shards.literal(),
                                keys.jobs.literal(), keys.tokens.literal())) {
      reply[row[0].as<std::size_t>() - 1] = LeasedJob{row[1].as<TypeId>(), row[2].as<int>(), row[3].as<int>()};
    }
    return reply;
  });
}

Result<std::vector<LeaseReply>> PgJobDesk::finish_leased(std::span<const FinishRequest> requests,
                                                         const std::string& node) {
  std::vector<LeaseReply> replies(requests.size(), LeaseReply::stale);
  // First without waiting, so that one locked row does not hold up the rest; then patiently for those that were left:
  // what is stale by then matches nothing and waits for nobody.
  for (const bool wait : {false, true}) {
    std::vector<std::size_t> open;
    std::vector<FinishRequest> left;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (replies[i] == LeaseReply::applied) continue;
      open.push_back(i);
    }
    if (open.empty()) break;
    // In one order for all: two that wait for each other's rows must not.
    std::ranges::sort(open, {}, [&](std::size_t i) { return requests[i].job_id; });
    for (const std::size_t i : open) left.push_back(requests[i]);
    auto done = session_.write<Unit>([&](pqxx::connection& connection) {
      pqxx::nontransaction tx(connection);
      const auto& name =
          session_.prepared(wait ? "finish_leased_wait" : "finish_leased", [=] { return sql::finish_leased(wait); });
      for (const auto& row : FinishArrays(left).exec(tx, name, node)) {
        replies[open[row[0].as<std::size_t>() - 1]] = LeaseReply::applied;
      }
      return Unit{};
    });
    if (!done) return done.error();
  }
  // Held, and yet unchanged: the shard stands still, for a moment.
  std::vector<Lease> unchanged;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (replies[i] == LeaseReply::stale) unchanged.push_back({requests[i].job_id, requests[i].token});
  if (unchanged.empty()) return replies;
  const auto held = leased(unchanged);
  if (!held) return held.error();
  if (std::ranges::any_of(*held, [](const auto& lease) { return lease.has_value(); }))
    return Error{ErrorCode::conflict, "it stands still", kElsewhere};
  return replies;
}

Result<std::vector<std::optional<TypeId>>> PgJobDesk::extend(std::span<const Lease> leases, Duration ttr) {
  using Reply = std::vector<std::optional<TypeId>>;
  // In one order for all, or two could wait for each other's rows.
  std::vector<std::size_t> order(leases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return leases[i].job_id; });
  std::vector<Lease> sorted;
  for (const std::size_t i : order) sorted.push_back(leases[i]);
  return session_.write<Reply>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    LeaseArrays keys(sorted);
    Reply types(leases.size());
    for (const auto& row : exec(tx, session_.prepared("extend", sql::extend), keys.shards.literal(),
                                keys.jobs.literal(), keys.tokens.literal(), ttr.count())) {
      types[order[row[0].as<std::size_t>() - 1]] = row[1].as<TypeId>();
    }
    return types;
  });
}

}  // namespace tocsin
