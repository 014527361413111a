// DatabasesApi: the REST interface of a node with three databases, in memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/api_fixture.h"

namespace tocsin {

class DatabasesApi : public ApiTest {
 protected:
  DatabasesApi() : ApiTest(3) {}

  // A business key whose jobs live there.
  std::string key_at(DatabaseId database_id, int n = 0) {
    for (int i = 0;; ++i) {
      const std::string key = "k-" + std::to_string(i);
      if (backend.database_of(shard_of(key, kDefaultShards)) == database_id && n-- == 0) return key;
    }
  }
  std::string batch_of(const std::vector<std::string>& keys, const std::string& more = "") {
    std::string jobs;
    for (const std::string& key : keys)
      jobs += std::string(jobs.empty() ? "" : ",") + R"({"biz_type":"order.unpaid","delay_ms":60000,"biz_id":")" + key +
              '"' + more + "}";
    return R"({"jobs":[)" + jobs + "]}";
  }
  std::size_t live_at(DatabaseId database_id) { return backend.database_at(database_id).live().size(); }
  // The end of a move: the rows live there, every node has the new map, and the old database is cleared.
  void move(Shard shard, DatabaseId from, DatabaseId to) {
    for (const auto& [id, row] : std::map(backend.database_at(from).live())) {
      if (shard_of(id) != shard) continue;
      backend.database_at(to).put_copy(*backend.database_at(from).copy_of(id));
      backend.database_at(from).drop_copy(id);
    }
    backend.moved[shard] = to;
  }
  static std::string cancel_of(const std::string& id) { return R"({"job_ids":[")" + id + "\"]}"; }
  void kill(DatabaseId database_id) { backend.fails_at[database_id] = ErrorCode::unavailable; }
};

}  // namespace tocsin
