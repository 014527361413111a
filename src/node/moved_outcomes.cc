#include "node/moved_outcomes.h"

#include <algorithm>

namespace tocsin {

Result<std::vector<FinishReply>> MovedOutcomes::finish(std::span<const FinishRequest> requests,
                                                       const std::string& node) {
  const auto place_of = [&](const FinishRequest& request) {
    const Place place = others_.place_of(shard_of(request.job_id));
    return others_.sessions.contains(place) ? place : others_.own;
  };
  if (std::ranges::all_of(requests, [&](const auto& request) { return place_of(request) == others_.own; }))
    return PgJobStore::finish(requests, node);

  std::map<Place, std::vector<std::size_t>> parts;
  for (std::size_t i = 0; i < requests.size(); ++i) parts[place_of(requests[i])].push_back(i);
  std::vector<FinishReply> replies(requests.size(), FinishReply::busy);
  for (const auto& [place, part] : parts) {
    std::vector<FinishRequest> some;
    for (const std::size_t i : part) some.push_back(requests[i]);
    const auto done =
        place == others_.own
            ? PgJobStore::finish(some, node)
            : open_.try_emplace(place, others_.sessions.at(place), clock_).first->second.store.finish(some, node);
    if (!done && place == others_.own) return done.error();
    if (!done) continue;
    for (std::size_t i = 0; i < part.size(); ++i) replies[part[i]] = (*done)[i];
  }
  return replies;
}

}  // namespace tocsin
