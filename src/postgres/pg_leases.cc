// PgClientStore: reports of consumers about the jobs that they have leased.
#include <algorithm>
#include <functional>
#include <utility>

#include "ports/row_refusal.h"
#include "postgres/duplicate_ids.h"
#include "postgres/finish_arrays.h"
#include "postgres/pg_client_store.h"
#include "postgres/values.h"

namespace tocsin {

Result<std::vector<std::optional<LeasedJob>>> PgClientStore::leased(std::span<const Lease> leases) {
  using Reply = std::vector<std::optional<LeasedJob>>;
  return session_.read<Reply>([&](pqxx::nontransaction& tx) {
    LeaseArrays keys(leases);
    Reply reply(leases.size());
    for (const auto& row :
         exec(tx, session_.prepared("leased"), keys.shards.literal(), keys.jobs.literal(), keys.tokens.literal()))
      reply[row[0].as<std::size_t>() - 1] = LeasedJob{row[1].as<TypeId>(0), row[2].as<int>(0), row[3].as<int>(0)};
    return reply;
  });
}

namespace {

// Rows have an ordinal, from 1, and a type. Returns the types by ordinal. `of`: the largest ordinal.
std::vector<std::optional<TypeId>> types_of(const pqxx::result& rows, std::size_t of) {
  std::vector<std::optional<TypeId>> types(of);
  for (const auto& row : rows) types[row[0].as<std::size_t>() - 1] = row[1].as<TypeId>();
  return types;
}

}  // namespace

// A call that writes many leases: a lease that cannot be written does not stop the others.
class PgClientStore::LeaseWrite {
 public:
  using Indices = std::span<const std::size_t>;  // in the call
  // Runs one statement for the leases at `indices`, skipping locked rows. Returns the type of the
  // job for each lease that was written; nullopt for other leases.
  using Types = std::vector<std::optional<TypeId>>;
  using Statement = std::function<Result<Types>(Indices indices)>;

  LeaseWrite(PgClientStore& client_store, std::vector<Lease> leases, Statement statement)
      : client_store_(client_store), leases_(std::move(leases)), statement_(std::move(statement)) {}

  Result<std::vector<LeaseResult>> run() {
    replies_.assign(leases_.size(), {LeaseReply::busy});
    if (write(busy())) tell_stale();
    const bool is_any_settled = std::ranges::any_of(replies_, [](const LeaseResult& reply) {
      return reply.kind != LeaseReply::busy && reply.kind != LeaseReply::in_doubt;
    });
    // A refused row is settled: it is no reason for an Error of the leases beside it.
    if (trouble_ && !is_any_settled && !is_contention(trouble_->code)) return *trouble_;
    return std::move(replies_);
  }

 private:
  std::vector<std::size_t> busy() const {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < replies_.size(); ++i)
      if (replies_[i].kind == LeaseReply::busy) open.push_back(i);
    // In the same order in every call, so that two calls cannot deadlock. Leases of a shard are neighbours.
    std::ranges::sort(open, {}, [&](std::size_t i) { return std::pair(shard(i), leases_[i].job_id); });
    return open;
  }

  // False: the database does not answer.
  bool write(Indices indices) {
    if (indices.empty()) return true;
    if (refused_in_a_row_ >= kMostRefusedInARow) return refuse(indices, untried(*trouble_));
    const auto written = statement_(indices);
    if (written) {
      refused_in_a_row_ = 0;
      for (std::size_t i = 0; i < indices.size(); ++i)
        if (const auto type = (*written)[i]) replies_[indices[i]] = {LeaseReply::applied, *type};
      return true;
    }
    trouble_ = written.error();
    const bool is_refused = is_refused_row(*trouble_) && !is_contention(trouble_->code);
    if (is_refused && indices.size() == 1) {
      ++refused_in_a_row_;
      return refuse(indices, *trouble_);
    }
    if (is_refused || (trouble_->code == ErrorCode::moved && shard(indices.front()) != shard(indices.back()))) {
      // A row is refused, or one shard is write-frozen: the others are written without it.
      const std::size_t half = indices.size() / 2;
      return write(indices.first(half)) && write(indices.subspan(half));
    }
    if (trouble_->code == ErrorCode::in_doubt)
      for (const std::size_t i : indices) replies_[i].kind = LeaseReply::in_doubt;
    return is_contention(trouble_->code);
  }

  bool refuse(Indices indices, const Error& why) {
    for (const std::size_t i : indices) replies_[i] = {LeaseReply::refused, 0, why.message};
    return true;
  }

  // Unchanged leases that are not held are stale, unless their shard does not live here; held ones are locked or their
  // shard is write-frozen.
  void tell_stale() {
    const std::vector<std::size_t> open = busy();
    if (open.empty()) return;
    std::vector<Lease> unchanged;
    unchanged.reserve(open.size());
    for (const std::size_t i : open) unchanged.push_back(leases_[i]);
    const auto held = client_store_.leased(unchanged);
    if (!held) {
      trouble_ = held.error();
      return;
    }
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto& job = (*held)[i];
      if (!job || job->type_id == 0) replies_[open[i]].kind = job ? LeaseReply::moved : LeaseReply::stale;
    }
  }

  int shard(std::size_t i) const { return shard_of(leases_[i].job_id); }

  PgClientStore& client_store_;
  const std::vector<Lease> leases_;
  const Statement statement_;
  std::vector<LeaseResult> replies_;
  std::optional<Error> trouble_;  // the last
  int refused_in_a_row_ = 0;      // each alone, and nothing was written since
};

Result<std::vector<LeaseResult>> PgClientStore::finish_leased(std::span<const FinishRequest> requests,
                                                              const std::string& node) {
  std::vector<Lease> leases;
  for (const FinishRequest& request : requests) leases.push_back({request.job_id, request.token});
  const auto statement = [&](LeaseWrite::Indices indices) {
    std::vector<FinishRequest> some;
    for (const std::size_t i : indices) some.push_back(requests[i]);
    return session_.write<LeaseWrite::Types>([&](pqxx::nontransaction& tx) {
      const auto& name = session_.prepared("finish_leased");
      std::vector<JobId> ids;
      ids.reserve(some.size());
      for (const FinishRequest& request : some) ids.push_back(request.job_id);
      return types_of(
          with_duplicate_ids_repaired(session_, tx, ids, [&] { return FinishArrays(some).exec(tx, name, node); }),
          indices.size());
    });
  };
  return LeaseWrite(*this, std::move(leases), statement).run();
}

Result<std::vector<LeaseResult>> PgClientStore::extend(std::span<const Extension> extensions) {
  std::vector<Lease> leases;
  for (const Extension& extension : extensions) leases.push_back(extension.lease);
  const auto statement = [&](LeaseWrite::Indices indices) {
    std::vector<Lease> some;
    PgArray ttrs;
    for (const std::size_t i : indices) {
      some.push_back(leases[i]);
      ttrs.add(extensions[i].ttr.count());
    }
    return session_.write<LeaseWrite::Types>([&](pqxx::nontransaction& tx) {
      const LeaseArrays keys(some);
      return types_of(exec(tx, session_.prepared("extend"), keys.shards.literal(), keys.jobs.literal(),
                           keys.tokens.literal(), ttrs.literal()),
                      indices.size());
    });
  };
  return LeaseWrite(*this, leases, statement).run();
}

}  // namespace tocsin
