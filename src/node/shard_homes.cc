#include "node/shard_homes.h"

#include <algorithm>
#include <memory>

#include "api/backend.h"
#include "node/all_answers.h"

namespace tocsin {
namespace {

using Shards = std::optional<ShardSet>;
using Told = std::vector<ShardsOfDatabase>;

bool has(const Shards& shards, Shard shard) { return shards && shards->test(static_cast<std::size_t>(shard)); }

bool are_all_there(const std::vector<ShardHome>& homes, const Told& told) {
  return std::ranges::all_of(homes, [&told](const ShardHome& home) {
    return std::ranges::any_of(told, [&home](const ShardsOfDatabase& each) {
      return each.database_id == home.database_id && has(each.shards, home.shard);
    });
  });
}

void ask(const std::vector<Database*>& databases, std::function<void(Told)> done) {
  const auto tell = [databases, done = std::move(done)](const std::vector<Shards>& all) {
    Told told;
    for (std::size_t i = 0; i < all.size(); ++i) told.push_back({databases[i]->database_id(), all[i]});
    done(std::move(told));
  };
  const auto answers = std::make_shared<AllAnswers<Shards>>(databases.size(), tell);
  for (std::size_t i = 0; i < databases.size(); ++i) {
    const auto take = [answers, i](const Result<ShardSet>& shards) {
      answers->take(i, shards ? Shards(*shards) : std::nullopt);
    };
    if (!databases[i]->ask_shards(take)) answers->take(i, std::nullopt);
  }
}

}  // namespace

Status judge_homes(std::span<const ShardHome> homes, std::span<const ShardsOfDatabase> databases) {
  for (const auto& [shard, home] : homes) {
    bool is_told = false, is_there = false, may_be_elsewhere = false;
    for (const auto& [database_id, shards] : databases) {
      if (database_id == home) {
        is_told = shards.has_value();
        is_there = has(shards, shard);
      } else {
        may_be_elsewhere = may_be_elsewhere || !shards || has(shards, shard);
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
  std::vector<Database*> first;
  for (const ShardHome& each : homes) first.push_back(map.at(each.database_id));
  std::ranges::sort(first);
  first.erase(std::ranges::unique(first).begin(), first.end());
  if (first.empty()) return done(Unit{});
  ask(first, [&map, homes = std::move(homes), done = std::move(done)](const Told& told) {
    if (are_all_there(homes, told)) return done(Unit{});
    std::vector<Database*> all;
    for (const auto& database : map.all()) all.push_back(database.get());
    ask(all, [&map, homes, done](Told by_all) {
      for (const auto& [database_id, shards] : map.unknown()) by_all.push_back({database_id, {}});
      done(judge_homes(homes, by_all));
    });
  });
}

}  // namespace tocsin
