#include "multidb/outcome_router.h"

#include <algorithm>

#include "ports/row_refusal.h"

namespace tocsin {
namespace {

constexpr Duration kLeftAlone = std::chrono::seconds(2);  // one that refuses at once

// Calls `finish` with the part, and after the refusal of a row with its halves. Returns the last Error; a refusal: all
// other rows were written.
template <class Finish>
Status in_parts(std::span<const std::size_t> part, const Finish& finish) {
  Status done = finish(part);
  if (done || part.size() == 1 || !is_refused_row(done.error())) return done;
  const std::size_t half = part.size() / 2;
  Status first = in_parts(part.first(half), finish);
  if (!first && !is_refused_row(first.error())) return first;
  Status second = in_parts(part.subspan(half), finish);
  return second ? first : second;
}

}  // namespace

Result<std::vector<FinishReply>> OutcomeRouter::finish_at(DatabaseId database_id,
                                                          std::span<const FinishRequest> requests,
                                                          const std::string& node) {
  PgJobStore& store = open_.try_emplace(database_id, others_.sessions.at(database_id), clock_).first->second.store;
  store.answer_within(limit_);
  return store.finish(requests, node);
}

Result<std::vector<FinishReply>> OutcomeRouter::finish(std::span<const FinishRequest> requests,
                                                       const std::string& node) {
  const auto database_of = [&](const FinishRequest& request) {
    const DatabaseId database_id = others_.database_of(shard_of(request.job_id));
    return others_.sessions.contains(database_id) ? database_id : others_.own;
  };
  std::vector<DatabaseId> database_ids(requests.size());
  std::ranges::transform(requests, database_ids.begin(), database_of);
  if (std::ranges::all_of(database_ids, [&](DatabaseId database_id) { return database_id == others_.own; }))
    return finish_here(requests, node);

  using Part = std::span<const std::size_t>;
  std::map<DatabaseId, std::vector<std::size_t>> parts;
  for (std::size_t i = 0; i < requests.size(); ++i) parts[database_ids[i]].push_back(i);
  std::vector<FinishReply> replies(requests.size(), FinishReply::busy);
  const auto finish_part = [&](Part part, const auto& ask) -> Status {
    std::vector<FinishRequest> some;
    for (const std::size_t i : part) some.push_back(requests[i]);
    const auto done = ask(some);
    if (!done) return done.error();
    for (std::size_t i = 0; i < part.size(); ++i) replies[part[i]] = (*done)[i];
    return Unit{};
  };
  if (const auto own = parts.extract(others_.own)) {
    const auto here = [&](const auto& some) { return finish_here(some, node); };
    if (auto done = finish_part(own.mapped(), here); !done) return done.error();
  }
  for (const auto& [database_id, part] : parts) {
    const auto asked_at = clock_.now();
    if (const auto alone = left_alone_until_.find(database_id);
        alone != left_alone_until_.end() && asked_at < alone->second)
      continue;
    const auto there = [&, id = database_id](const auto& some) { return finish_at(id, some, node); };
    const Status done = in_parts(part, [&](Part some) { return finish_part(some, there); });
    const bool is_answered = done || is_refused_row(done.error());
    const auto now = clock_.now();
    if (is_answered)
      left_alone_until_.erase(database_id);
    else
      left_alone_until_[database_id] = now + std::max(kLeftAlone, 2 * (now - asked_at));
    if (!done && is_answered && requests.size() == 1) return done.error();
    if (!done) failed_(done.error());
  }
  return replies;
}

}  // namespace tocsin
