#include "node/shard_homes.h"

#include <memory>
#include <set>
#include <utility>

#include "api/backend.h"
#include "base/all_answers.h"

namespace tocsin {
namespace {

bool lives(const ShardsHere& here, Shard shard) { return here.living.test(static_cast<std::size_t>(shard)); }

const std::optional<ShardsHere>& said_by(const ToldShards& told, DatabaseId database_id) {
  static const std::optional<ShardsHere> nothing;
  const auto found = told.find(database_id);
  return found == told.end() ? nothing : found->second;
}

// The other databases of the moves of shards that do not live in their homes.
std::set<DatabaseId> partners(const std::vector<ShardHome>& homes, const ToldShards& told) {
  std::set<DatabaseId> all;
  for (const auto& [shard, home] : homes) {
    const auto& here = said_by(told, home);
    if (!here || lives(*here, shard)) continue;
    if (const auto partner = here->partner.find(shard); partner != here->partner.end()) all.insert(partner->second);
  }
  return all;
}

// Adds what these databases say to `told`. One that the node does not have says nothing.
void ask(const DatabaseMap& map, const std::set<DatabaseId>& database_ids, ToldShards told,
         std::function<void(ToldShards)> done) {
  using Told = std::pair<DatabaseId, std::optional<ShardsHere>>;
  std::vector<Database*> databases;
  for (const DatabaseId database_id : database_ids)
    if (Database* const database = map.at(database_id)) databases.push_back(database);
  if (databases.empty()) return done(std::move(told));
  const auto add = [told = std::move(told), done = std::move(done)](std::vector<std::optional<Told>> all) {
    ToldShards by_all = told;
    for (auto& each : all) by_all.insert_or_assign(each->first, std::move(each->second));
    done(std::move(by_all));
  };
  const auto answers = std::make_shared<AllAnswers<std::optional<Told>>>(databases.size(), add);
  for (std::size_t i = 0; i < databases.size(); ++i) {
    const DatabaseId database_id = databases[i]->database_id();
    const auto take = [answers, i, database_id](Result<ShardsHere> here) {
      answers->take(i, Told(database_id, here ? std::optional(std::move(*here)) : std::nullopt));
    };
    if (!databases[i]->ask_shards(take)) answers->take(i, Told(database_id, std::nullopt));
  }
}

}  // namespace

Status judge_homes(std::span<const ShardHome> homes, const ToldShards& told) {
  for (const auto& [shard, home] : homes) {
    const auto& here = said_by(told, home);
    if (!here)
      return Error{ErrorCode::conflict, "The job's database did not tell whether the job's shard is there", kInOutbox};
    if (lives(*here, shard)) continue;
    const auto partner = here->partner.find(shard);
    const bool is_moving = partner != here->partner.end();
    const auto& there = is_moving ? said_by(told, partner->second) : std::nullopt;
    if (!there || lives(*there, shard))
      return Error{ErrorCode::moved, "it has left the database that would be asked", ""};
  }
  return Unit{};
}

void check_homes(const DatabaseMap& map, std::vector<ShardHome> homes, std::function<void(Status)> done) {
  std::erase_if(homes, [&map](const ShardHome& each) { return !map.is_answering(each.database_id); });
  std::set<DatabaseId> database_ids;
  for (const ShardHome& each : homes) database_ids.insert(each.database_id);
  ask(map, database_ids, {}, [&map, homes = std::move(homes), done = std::move(done)](ToldShards told) {
    const auto others = partners(homes, told);
    ask(map, others, std::move(told), [homes, done](const ToldShards& by_all) { done(judge_homes(homes, by_all)); });
  });
}

}  // namespace tocsin
