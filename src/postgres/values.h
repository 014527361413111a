// Reads fields of rows as C++ values, and builds array parameters of jobs and leases. Used by the stores of
// src/postgres. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <pqxx/pqxx>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ports/job_store.h"
#include "postgres/text.h"

namespace tocsin {

inline std::string_view text_of(const pqxx::field& field) { return {field.c_str(), field.size()}; }
inline WallTime time_of(const pqxx::field& field) { return wall_time_from_pg(text_of(field)); }

// nullopt: NULL. Durations are microseconds.
template <class T>
std::optional<T> optional_of(const pqxx::field& field) {
  if (field.is_null()) return {};
  if constexpr (std::is_same_v<T, WallTime>)
    return time_of(field);
  else if constexpr (std::is_same_v<T, Duration>)
    return Duration(field.as<std::int64_t>());
  else
    return field.as<T>();
}

// The first column of all rows.
template <class T>
std::vector<T> column_of(const pqxx::result& rows) {
  std::vector<T> values;
  for (const auto& row : rows) values.push_back(row[0].as<T>());
  return values;
}

// The literal of an array of integers.
template <class Numbers>
std::string array_of(const Numbers& numbers) {
  PgArray array;
  for (const auto number : numbers) array.add(static_cast<std::int64_t>(number));
  return array.literal();
}

// Jobs as two array parameters: shards and ids, in the same order.
struct JobArrays {
  JobArrays() = default;
  explicit JobArrays(std::span<const JobId> ids) {
    shards.reserve(ids.size() * 4);
    jobs.reserve(ids.size() * 16);
    for (const JobId id : ids) add(id);
  }
  void add(JobId id) {
    shards.add(shard_of(id));
    jobs.add(id);
  }
  PgArray shards, jobs;
};

// Leases as three array parameters: shards, ids and tokens, in the same order.
struct LeaseArrays : JobArrays {
  LeaseArrays() = default;
  explicit LeaseArrays(std::span<const Lease> leases) {
    for (const Lease& lease : leases) add(lease.job_id, lease.token);
  }
  void add(JobId id, ClaimToken token) {
    JobArrays::add(id);
    tokens.add(token);
  }
  PgArray tokens;
};

}  // namespace tocsin
