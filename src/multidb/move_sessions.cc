#include "multidb/move_sessions.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/system_clock.h"
#include "postgres/pg_move_store.h"
#include "postgres/pg_shard_copy.h"
#include "postgres/pg_type_store.h"

namespace tocsin {
namespace {

SessionConfig move_session(const OpenDatabase& database, std::optional<Shard> shard) {
  SessionConfig session = session_of(database, "tocsin move" + (shard ? " of shard " + std::to_string(*shard) : ""));
  session.has_pinned_plans = false;
  session.statement_timeout_ms = 60'000;  // statements that may take longer set their own
  return session;
}

class PgMoveSession final : public MoveSession {
 public:
  explicit PgMoveSession(SessionConfig config) : session_(std::move(config)) {}
  MoveStore& store() override { return store_; }
  ShardCopy& copy() override { return copy_; }
  TypeStore& types() override { return types_; }

 private:
  Session session_;
  PgMoveStore store_{session_};
  PgShardCopy copy_{session_};
  PgTypeStore types_{session_};
};

}  // namespace

std::vector<MoveDatabase> move_databases(const std::vector<OpenDatabase>& databases) {
  std::vector<MoveDatabase> all;
  for (const OpenDatabase& each : databases) all.push_back({each.database_id, each.name, each.url});
  return all;
}

OpenMoveSession move_sessions(std::vector<OpenDatabase> databases) {
  return
      [all = std::move(databases)](DatabaseId database_id, std::optional<Shard> shard) -> std::unique_ptr<MoveSession> {
        return std::make_unique<PgMoveSession>(
            move_session(*std::ranges::find(all, database_id, &OpenDatabase::database_id), shard));
      };
}

MonoTime ThreadClock::now() const { return SystemClock().now(); }

void ThreadClock::sleep(Duration time) { std::this_thread::sleep_for(time); }

}  // namespace tocsin
