#include "tocsin/shard.h"

#include <openssl/sha.h>

#include "base/assert.h"

namespace tocsin {

Shard shard_of(std::string_view biz_id, int shards) {
  TOCSIN_ASSERT(shards >= 1 && shards <= kMaxShards);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(biz_id.data()), biz_id.size(), digest);
  const std::uint32_t head =
      std::uint32_t{digest[0]} << 24 | std::uint32_t{digest[1]} << 16 | std::uint32_t{digest[2]} << 8 | digest[3];
  return static_cast<Shard>(head % static_cast<std::uint32_t>(shards));
}

}  // namespace tocsin
