#include "multidb/outcome_router.h"

#include <algorithm>

namespace tocsin {
namespace {

constexpr Duration kLeftAlone = std::chrono::seconds(2);  // one that refuses at once

}  // namespace

Result<std::vector<FinishReply>> OutcomeRouter::finish_at(DatabaseId place, std::span<const FinishRequest> requests,
                                                          const std::string& node, Duration within) {
  return open_.try_emplace(place, others_.sessions.at(place), clock_)
      .first->second.store.finish(requests, node, within);
}

Result<std::vector<FinishReply>> OutcomeRouter::finish(std::span<const FinishRequest> requests, const std::string& node,
                                                       Duration within) {
  const auto database_of = [&](const FinishRequest& request) {
    const DatabaseId place = others_.database_of(shard_of(request.job_id));
    return others_.sessions.contains(place) ? place : others_.own;
  };
  std::vector<DatabaseId> places(requests.size());
  std::ranges::transform(requests, places.begin(), database_of);
  if (std::ranges::all_of(places, [&](DatabaseId place) { return place == others_.own; }))
    return finish_here(requests, node, within);

  std::map<DatabaseId, std::vector<std::size_t>> parts;
  for (std::size_t i = 0; i < requests.size(); ++i) parts[places[i]].push_back(i);
  std::vector<FinishReply> replies(requests.size(), FinishReply::busy);
  const auto finish_part = [&](const std::vector<std::size_t>& part, const auto& ask) -> Status {
    std::vector<FinishRequest> some;
    for (const std::size_t i : part) some.push_back(requests[i]);
    const auto done = ask(some);
    if (!done) return done.error();
    for (std::size_t i = 0; i < part.size(); ++i) replies[part[i]] = (*done)[i];
    return Unit{};
  };
  if (const auto own = parts.extract(others_.own)) {
    const auto here = [&](const auto& some) { return finish_here(some, node, within); };
    if (auto done = finish_part(own.mapped(), here); !done) return done.error();
  }
  for (const auto& [place, part] : parts) {
    const auto asked_at = clock_.now();
    if (const auto alone = left_alone_until_.find(place); alone != left_alone_until_.end() && asked_at < alone->second)
      continue;
    if (finish_part(part, [&, place = place](const auto& some) { return finish_at(place, some, node, within); })) {
      left_alone_until_.erase(place);
    } else {
      const auto now = clock_.now();
      left_alone_until_[place] = now + std::max(kLeftAlone, 2 * (now - asked_at));
    }
  }
  return replies;
}

}  // namespace tocsin
