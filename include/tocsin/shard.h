// Which shard a business key belongs to, and the shard in a job id. A shard is a hash slice of all jobs; it lives in
// one database, and one node scans it.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

namespace tocsin {

using JobId = std::int64_t;
using Shard = std::int16_t;

// Database id: number of a database in its installation; 0: the control database.
using DatabaseId = int;

// Each of several databases draws its sequence numbers in steps of this number, with a remainder of its own, so no two
// databases draw the same id. DO NOT CHANGE.
inline constexpr int kMaxDatabases = 64;
inline constexpr int kMaxShards = 1024;    // the low 10 bits of a job_id. DO NOT CHANGE.
inline constexpr int kDefaultShards = 64;  // of an installation whose configuration names no number

// Shard s is in the set if bit s is true.
using ShardSet = std::bitset<kMaxShards>;

// First 4 bytes of SHA-256(biz_id) as big-endian unsigned, modulo `shards` (1..kMaxShards). The SQL function
// tocsin.shard_of computes the same. DO NOT CHANGE: stored rows sit where this put them.
Shard shard_of(std::string_view biz_id, int shards);

// The shard that a job_id carries in its low 10 bits. It may exceed the installation's shards if no job has this id.
constexpr Shard shard_of(JobId id) { return static_cast<Shard>(id & (kMaxShards - 1)); }
// `sequence`: drawn from the database, 1 to 2^53 - 1.
constexpr JobId make_job_id(std::int64_t sequence, Shard shard) { return sequence * kMaxShards + shard; }

}  // namespace tocsin
