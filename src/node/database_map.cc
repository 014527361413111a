#include "node/database_map.h"

#include <algorithm>
#include <iterator>

namespace tocsin {

DatabaseMap::DatabaseMap(const Databases& databases, std::map<DatabaseId, std::string> names, const ShardMap& map)
    : databases_(databases), names_(std::move(names)), by_shard_(std::make_shared<const ByShard>(map.database_ids)) {
  for (const auto& database : databases_) by_id_.at(static_cast<std::size_t>(database->database_id())) = database.get();
}

void DatabaseMap::set_shards(const std::vector<Shard>& mine, const ShardMap& map) {
  by_shard_.set(std::make_shared<const ByShard>(map.database_ids));
  for (const auto& database : databases_) {
    std::vector<Shard> there;
    std::ranges::copy_if(mine, std::back_inserter(there),
                         [&](Shard shard) { return map.database_of(shard) == database->database_id(); });
    std::vector<Shard> all;
    for (int shard = 0; shard < static_cast<int>(map.database_ids.size()); ++shard)
      if (map.database_of(static_cast<Shard>(shard)) == database->database_id())
        all.push_back(static_cast<Shard>(shard));
    database->set_shards(std::move(there), std::move(all));
  }
}

std::vector<DatabaseId> DatabaseMap::ids() const {
  std::vector<DatabaseId> ids;
  for (const auto& database : databases_) ids.push_back(database->database_id());
  return ids;
}

DatabaseId DatabaseMap::database_of(Shard shard) const {
  const auto by_shard = by_shard_.get();
  const auto i = static_cast<std::size_t>(shard);
  return i < by_shard->size() ? (*by_shard)[i] : 0;
}

std::map<DatabaseId, int> DatabaseMap::unknown() const {
  std::map<DatabaseId, int> shards;
  for (const DatabaseId database_id : *by_shard_.get())
    if (!at(database_id)) ++shards[database_id];
  return shards;
}

std::string DatabaseMap::name(DatabaseId database_id) const {
  const auto known = names_.find(database_id);
  return known == names_.end() ? "number " + std::to_string(database_id) : known->second;
}

std::string DatabaseMap::title(DatabaseId database_id) const {
  const Database* database = at(database_id);
  return database ? database->title() : name(database_id);
}

std::optional<Error> DatabaseMap::unavailable_reason(DatabaseId database_id) const {
  const Database* database = at(database_id);
  if (!database)
    return Error{ErrorCode::unavailable,
                 "this node was not started with it; start it with all databases of the shard map", ""};
  return database->unavailable_reason();
}

bool DatabaseMap::is_answering(DatabaseId database_id) const {
  const Database* database = at(database_id);
  return database && database->is_answering();
}

}  // namespace tocsin
