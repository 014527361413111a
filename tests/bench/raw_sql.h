// A node's own statements, issued as raw SQL on one connection with a node's session settings: what is left when all of
// the node is taken away. The floor that a node is compared with.
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

// Every verb is one statement and one durable transaction, over the tables of all shards, and throws when it did not
// apply to all of the jobs.
// Thread: owner only.
class RawSql {
 public:
  // Every statement is planned, as a node does it before it serves.
  RawSql(const std::string& database, TypeId type);

  // Draws the ids of `jobs`; not part of creating them, as a node draws in large blocks.
  std::vector<JobId> draw_ids(std::span<const BenchJob> jobs);
  void create(std::span<const JobId> ids, std::span<const BenchJob> jobs);
  void fire(std::span<const JobId> ids);
  void claim_and_finish(std::span<const JobId> ids);  // two transactions
  void cancel(std::span<const JobId> ids);

  // The oldest due of one shard; returns how many. `limit` 0 plans it.
  std::size_t fire_due(Shard shard, int limit);

 private:
  const std::string& prepared(const std::string& name, std::string (*make_sql)());

  pqxx::connection connection_;
  const TypeId type_;
  std::unordered_set<std::string> prepared_;
};

}  // namespace tocsin::bench
