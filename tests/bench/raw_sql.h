// RawSql: executes a node's own statements on one connection with a node's session settings. Its speed is the floor:
// what the database alone can do, to compare a node with.
#pragma once

#include <cstdint>
#include <pqxx/pqxx>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "bench/jobs.h"
#include "tocsin/job.h"

namespace tocsin::bench {

// Creates the schema and the type kType in an empty database. Returns the id of the type. Throws Failure.
TypeId install_schema(const std::string& database);

// Each verb is one statement and one durable transaction over the tables of all shards. It throws if it does not change
// all of the jobs. Thread: owner only.
class RawSql {
 public:
  // Connects and plans every statement, as a node does before it serves.
  RawSql(const std::string& database, TypeId type);

  // Draws the ids of `jobs`, which is not part of create(): a node draws ids in large blocks.
  std::vector<JobId> draw_ids(std::span<const BenchJob> jobs);
  void create(std::span<const JobId> ids, std::span<const BenchJob> jobs);
  void fire(std::span<const JobId> ids);
  void claim_and_finish(std::span<const JobId> ids);  // two transactions
  void cancel(std::span<const JobId> ids);

  // Fires the `limit` jobs of one shard that have been due longest; returns how many. `limit` 0 only plans the
  // statement.
  std::size_t fire_due(Shard shard, int limit);

 private:
  const std::string& prepared(const std::string& name, std::string (*make_sql)());

  pqxx::connection connection_;
  const TypeId type_;
  std::unordered_set<std::string> prepared_;
};

}  // namespace tocsin::bench
