#include "tocsin/shard.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tocsin {
namespace {

std::string repeated(const std::string& what, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += what;
  return out;
}

// The first four bytes of SHA-256, big-endian, computed with another implementation (Python's hashlib).
TEST(Shard, IsTheHeadOfTheHashModuloTheShardCount) {
  const std::map<std::string, std::uint32_t> heads{
      {"a", 3398926610U},
      {"0", 1609362278U},
      {"order-1", 196076065U},
      {"18446744073709551615", 752559654U},
      {"550e8400-e29b-41d4-a716-446655440000", 2745819629U},
      {" ", 917104625U},
      {" \t", 3619139427U},
      {"\\n", 2819510635U},
      {"订单-42", 2969458789U},
      {"Ünïcödé", 967808464U},
      {"😀🚀", 3139398716U},
      {repeated("x", 128), 618273665U},
      {repeated("é", 64), 2220373719U},
  };
  for (const auto& [key, head] : heads) {
    for (const std::uint32_t shards : {1U, 2U, 8U, 64U, 1000U, 1023U, 1024U}) {
      EXPECT_EQ(shard_of(key, static_cast<int>(shards)), head % shards) << key << " of " << shards;
    }
  }
}

TEST(Shard, SpreadsKeysEvenly) {
  std::map<Shard, int> keys_of;
  for (int i = 0; i < 64'000; ++i) ++keys_of[shard_of("order-" + std::to_string(i), 64)];
  ASSERT_EQ(keys_of.size(), 64U);
  for (const auto& [shard, n] : keys_of) {
    EXPECT_GT(n, 800) << shard;  // 1,000 expected, standard deviation 31
    EXPECT_LT(n, 1200) << shard;
  }
}

TEST(Shard, IsCarriedByTheJobId) {
  for (const Shard shard : {Shard{0}, Shard{1}, Shard{63}, Shard{1023}}) {
    for (const std::int64_t sequence : {std::int64_t{1}, std::int64_t{123456789}, std::int64_t{9007199254740991}}) {
      const JobId id = make_job_id(sequence, shard);
      EXPECT_EQ(shard_of(id), shard);
      EXPECT_EQ(id / kMaxShards, sequence);
    }
  }
}

}  // namespace
}  // namespace tocsin
