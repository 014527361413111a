#include "node/shard_homes.h"

#include <algorithm>
#include <memory>

#include "api/backend.h"
#include "node/all_answers.h"

namespace tocsin {

Status judge_homes(std::span<const ShardHome> homes, std::span<const ShardsOfDatabase> databases) {
  for (const auto& [shard, home] : homes) {
    const auto at = static_cast<std::size_t>(shard);
    bool is_told = false, is_there = false, may_be_elsewhere = false;
    for (const auto& [database_id, shards] : databases) {
      if (database_id == home) {
        is_told = shards.has_value();
        is_there = shards && shards->test(at);
      } else {
        may_be_elsewhere = may_be_elsewhere || !shards || shards->test(at);
      }
    }
    if (!is_told)
      return Error{ErrorCode::conflict, "The job's database did not tell whether the job's shard is there", kInOutbox};
    if (!is_there && may_be_elsewhere)
      return Error{ErrorCode::moved, "it has left the database that would be asked", ""};
  }
  return Unit{};
}

void check_homes(const DatabaseMap& map, std::vector<ShardHome> homes, std::function<void(Status)> done) {
  std::erase_if(homes, [&map](const ShardHome& each) { return !map.is_answering(each.database_id); });
  if (homes.empty()) return done(Unit{});
  std::vector<ShardsOfDatabase> asked;
  for (const auto& database : map.all()) asked.push_back({database->database_id(), {}});
  for (const auto& [database_id, shards] : map.unknown()) asked.push_back({database_id, {}});
  const auto judge = [homes = std::move(homes), asked,
                      done = std::move(done)](std::vector<std::optional<ShardSet>> answers) mutable {
    for (std::size_t i = 0; i < answers.size(); ++i) asked[i].shards = answers[i];
    done(judge_homes(homes, asked));
  };
  const auto answers = std::make_shared<AllAnswers<std::optional<ShardSet>>>(map.all().size(), judge);
  for (std::size_t i = 0; i < map.all().size(); ++i) {
    const auto take = [answers, i](const Result<ShardSet>& shards) {
      answers->take(i, shards ? std::optional(*shards) : std::nullopt);
    };
    if (!map.all()[i]->ask_shards(take)) answers->take(i, std::nullopt);
  }
}

}  // namespace tocsin
