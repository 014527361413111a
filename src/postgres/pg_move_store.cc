#include "postgres/pg_move_store.h"

#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

class MoveTakenOver : public Superseded {
 public:
  MoveTakenOver() : Superseded("another driver has taken this move over") {}
};

constexpr Duration kVeryLong = std::chrono::hours(24);

// The statement of a file that sets the end of the write freeze.
std::string freezing(std::string_view name) {
  return sql::statement(name, {{"thaw_lease_ms", std::to_string(kThawLease.count())}});
}

ShardMove::State state_from(const std::string& text) {
  using State = ShardMove::State;
  for (const State state : {State::switching, State::switched, State::aborting})
    if (text == to_string(state)) return state;
  return State::copying;
}

ShardMove move_from(const pqxx::row& row) {
  return {
      static_cast<Shard>(row[0].as<int>()), row[1].as<DatabaseId>(), row[2].as<DatabaseId>(), row[3].as<std::int64_t>(),
      state_from(row[4].c_str()),           row[5].as<bool>(),       row[6].as<bool>()};
}

// Writers queue behind this lock request, so it gives up early.
void wait_briefly(pqxx::transaction_base& tx) { tx.exec0("SET LOCAL lock_timeout = '300ms'"); }

// A bulk operation visits the jobs of one database after the other: of a shard that moves meanwhile it would visit each
// job twice or never. PgBulkStore::start() takes the same lock, and refuses while a shard may be frozen.
void refuse_during_bulk(pqxx::transaction_base& tx) {
  tx.exec1(sql::statement("placement_lock"));
  const auto running = tx.exec(sql::statement("bulk_running"));
  if (running.empty()) return;
  const std::string id = running[0][0].c_str();
  throw Busy("bulk operation " + id + " runs: the shard stays until it has ended (POST /v1/bulk/" + id +
             "/stop ends it)");
}

std::string call(const char* function, const ShardMove& move) {
  return sql::statement("move_call", {{"function", function}, {"shard", std::to_string(move.shard)}});
}

}  // namespace

std::vector<std::string> job_tables(pqxx::transaction_base& tx, Shard shard) {
  return column_of<std::string>(tx.exec_params(sql::statement("job_tables_of_shard"), static_cast<int>(shard)));
}

Status as_driver(Session& session, const ShardMove& move, const std::function<void(pqxx::work&)>& work,
                 TimeLimit limit) {
  const bool is_long = limit == TimeLimit::day;
  return session.transact(
      [&](pqxx::work& tx) {
        const auto mine = tx.exec_params(sql::statement("move_lock"), static_cast<int>(move.shard), move.driver);
        if (mine.size() != 1) throw MoveTakenOver();
        if (is_long) tx.exec0("SET LOCAL statement_timeout = 0");
        work(tx);
      },
      is_long ? kVeryLong : Duration(0));
}

// ---- the control database

Result<std::vector<ShardMove>> PgMoveStore::list() {
  return session_.read<std::vector<ShardMove>>([&](pqxx::nontransaction& tx) {
    std::vector<ShardMove> moves;
    for (const auto& row : tx.exec(sql::statement("moves"))) moves.push_back(move_from(row));
    return moves;
  });
}

Result<std::optional<ShardMove>> PgMoveStore::take(Shard shard, std::optional<DatabaseId> target,
                                                   std::optional<std::int64_t> driver) {
  using Taken = std::optional<ShardMove>;
  return session_.transact<Taken>([&](pqxx::work& tx) -> Taken {
    const int number = shard;
    auto rows = tx.exec_params(sql::statement("move_take"), number, driver);
    if (rows.empty()) {
      if (driver && !tx.exec_params("SELECT FROM tocsin.move WHERE shard = $1", number).empty())
        throw Refused("another command drives this move now");
      if (!target) return {};
      rows = tx.exec_params(sql::statement("move_begin"), number, *target);
      if (rows.empty()) return {};
    }
    const ShardMove move = move_from(rows[0]);
    if (target && move.target != *target)
      throw Refused("shard " + std::to_string(shard) +
                    " is on its way to another database: let that end, or roll it back with --abort");
    return move;
  });
}

Result<bool> PgMoveStore::take_over(ShardMove& move) {
  const auto taken = session_.transact<pqxx::result>([&](pqxx::work& tx) {
    return tx.exec_params(freezing("move_rescue"), static_cast<int>(move.shard), move.driver);
  });
  if (!taken) return taken.error();
  if (!taken->empty()) move = move_from(taken->front());
  return !taken->empty();
}

Status PgMoveStore::set_state(ShardMove& move, ShardMove::State state) {
  const bool may_be_frozen = move.may_be_frozen || state == ShardMove::State::switching;
  auto done = as_driver(session_, move, [&](pqxx::work& tx) {
    if (state == ShardMove::State::switching) refuse_during_bulk(tx);
    const auto changed = tx.exec_params(freezing(may_be_frozen ? "move_set_state" : "move_set_state_writable"),
                                        static_cast<int>(move.shard), to_string(state), to_string(move.state));
    if (changed.affected_rows() != 1) throw MoveTakenOver();
  });
  if (done) move.state = state, move.may_be_frozen = may_be_frozen;
  return done;
}

Status PgMoveStore::keep(const ShardMove& move) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    tx.exec_params0(freezing("move_extend_freeze"), static_cast<int>(move.shard));
  });
}

Status PgMoveStore::set_writable(ShardMove& move) {
  if (!move.may_be_frozen) return Unit{};
  auto done = as_driver(session_, move, [&](pqxx::work& tx) {
    tx.exec_params0("UPDATE tocsin.move SET thaw_at = NULL WHERE shard = $1", static_cast<int>(move.shard));
  });
  if (done) move.may_be_frozen = false;
  return done;
}

Result<std::vector<std::string>> PgMoveStore::nodes_without(DatabaseId database_id) {
  return session_.read<std::vector<std::string>>([&](pqxx::nontransaction& tx) {
    return column_of<std::string>(tx.exec_params(sql::statement("move_nodes_without"), database_id));
  });
}

Result<std::int64_t> PgMoveStore::map_version() {
  return session_.read<std::int64_t>(
      [](pqxx::nontransaction& tx) { return tx.exec1("SELECT version FROM tocsin.shard_map")[0].as<std::int64_t>(); });
}

Result<std::vector<std::string>> PgMoveStore::nodes_behind(std::int64_t version) {
  return session_.read<std::vector<std::string>>([&](pqxx::nontransaction& tx) {
    return column_of<std::string>(tx.exec_params(sql::statement("move_nodes_behind"), version));
  });
}

Status PgMoveStore::flip(ShardMove& move) {
  auto done = as_driver(session_, move, [&](pqxx::work& tx) {
    const auto changed = tx.exec_params(freezing("move_switch"), static_cast<int>(move.shard));
    const auto flipped =
        tx.exec_params(sql::statement("move_flip_map"), static_cast<int>(move.shard), move.source, move.target);
    if (changed.affected_rows() != 1 || flipped.affected_rows() != 1) throw MoveTakenOver();
    tx.exec0("NOTIFY tocsin_member");
  });
  if (done) move.state = ShardMove::State::switched;
  return done;
}

Status PgMoveStore::end(const ShardMove& move) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    tx.exec_params0("DELETE FROM tocsin.move WHERE shard = $1", static_cast<int>(move.shard));
  });
}

// The new driver's number is larger than the earlier one's. The shard may be write-frozen.
Status PgMoveStore::recall(const ShardMove& lost) {
  return session_.transact([&](pqxx::work& tx) {
    const int number = lost.shard;
    const auto made = tx.exec_params(freezing("move_recall"), number, lost.source, lost.target, lost.driver);
    if (made.affected_rows() == 0 && tx.exec_params("SELECT FROM tocsin.move WHERE shard = $1", number).empty())
      throw Refused("databases remember a move of shard " + std::to_string(number) +
                    " between others than the one it lives in: delete what they have of it in tocsin.move, in "
                    "pg_publication and in pg_subscription");
  });
}

// ---- source and target

Result<std::optional<ShardMove>> PgMoveStore::noted(Shard shard) {
  using Noted = std::optional<ShardMove>;
  return session_.read<Noted>([&](pqxx::nontransaction& tx) -> Noted {
    const auto rows = tx.exec_params(sql::statement("move_of_shard"), static_cast<int>(shard));
    return rows.empty() ? Noted() : Noted(move_from(rows[0]));
  });
}

Status PgMoveStore::end_others() {
  return session_.write([&](pqxx::nontransaction& tx) {
    const auto ended = tx.exec_params(sql::statement("move_end_sessions"), session_.config().application);
    if (ended[0][0].as<int>() > 0) throw Busy("a session of the command before does not end");
  });
}

Status PgMoveStore::note(const ShardMove& move) {
  return session_.transact([&](pqxx::work& tx) {
    const auto noted = tx.exec_params(sql::statement("move_note"), static_cast<int>(move.shard), move.source,
                                      move.target, move.driver);
    if (noted.affected_rows() != 1) throw MoveTakenOver();
  });
}

Status PgMoveStore::note_successor(const ShardMove& move) {
  return session_.transact([&](pqxx::work& tx) {
    const auto noted = tx.exec_params(sql::statement("move_note_successor"), static_cast<int>(move.shard), move.source,
                                      move.target, move.driver);
    if (noted.affected_rows() != 1) throw MoveTakenOver();
  });
}

Status PgMoveStore::forget(const ShardMove& move) {
  return session_.transact([&](pqxx::work& tx) {
    tx.exec_params0("DELETE FROM tocsin.move WHERE shard = $1 AND driver <= $2", static_cast<int>(move.shard),
                    move.driver);
  });
}

Result<std::vector<std::string>> PgMoveStore::tables(Shard shard) {
  return session_.read<std::vector<std::string>>([&](pqxx::nontransaction& tx) { return job_tables(tx, shard); });
}

Result<std::int64_t> PgMoveStore::delete_rows(const ShardMove& move, const std::string& table) {
  std::int64_t n = 0;
  auto done = as_driver(
      session_, move,
      [&](pqxx::work& tx) {
        n = tx.exec_params1("SELECT tocsin.forget_shard($1::regclass, $2::smallint)", table,
                            static_cast<int>(move.shard))[0]
                .as<std::int64_t>();
      },
      TimeLimit::day);
  if (!done) return done.error();
  return n;
}

// ---- source

Status PgMoveStore::freeze(const ShardMove& move) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    wait_briefly(tx);
    tx.exec(call("freeze_shard", move));
  });
}

Status PgMoveStore::unfreeze(const ShardMove& move) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    wait_briefly(tx);
    tx.exec(call("thaw_shard", move));
    tx.exec(call("open_shard", move));
  });
}

Status PgMoveStore::thaw(const ShardMove& move) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    wait_briefly(tx);
    tx.exec(call("thaw_shard", move));
  });
}

Result<std::string> PgMoveStore::take_counts(const ShardMove& move) {
  std::string counts;
  auto done = as_driver(
      session_, move, [&](pqxx::work& tx) { counts = tx.exec1(call("take_counts", move))[0].c_str(); }, TimeLimit::day);
  if (!done) return done.error();
  return counts;
}

Status PgMoveStore::empty_counts(const ShardMove& move) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    tx.exec_params0("UPDATE tocsin.move SET counts = '[]' WHERE shard = $1", static_cast<int>(move.shard));
  });
}

// ---- target

Status PgMoveStore::can_open(const ShardMove& move) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    wait_briefly(tx);
    tx.exec0("LOCK TABLE tocsin.job_live IN ACCESS EXCLUSIVE MODE");
  });
}

Status PgMoveStore::open(const ShardMove& move) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    wait_briefly(tx);
    tx.exec(call("open_shard", move));
  });
}

Status PgMoveStore::add_counts(const ShardMove& move, const std::string& counts) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    tx.exec_params("SELECT tocsin.add_counts($1::smallint, $2::jsonb)", static_cast<int>(move.shard), counts);
  });
}

}  // namespace tocsin
