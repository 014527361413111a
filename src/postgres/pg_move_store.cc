#include "postgres/pg_move_store.h"

#include <set>

#include "postgres/text.h"

namespace tocsin {
namespace {

// Thrown inside a transaction to leave it; becomes Error invalid.
class Refused : public pqxx::data_exception {
 public:
  explicit Refused(const std::string& why) : pqxx::data_exception(why, "", "22000") {}
};

class TakenOver : public Refused {
 public:
  TakenOver() : Refused("another command drives this move now") {}
};

constexpr const char* kColumns = "shard, source, target, driver, state";

ShardMove::State state_from(const std::string& text) {
  using State = ShardMove::State;
  for (const State state : {State::switching, State::switched, State::aborting})
    if (text == to_string(state)) return state;
  return State::copying;
}

ShardMove move_from(const pqxx::row& row) {
  return {static_cast<Shard>(row[0].as<int>()), row[1].as<Place>(), row[2].as<Place>(), row[3].as<std::int64_t>(),
          state_from(row[4].c_str())};
}

// Publications and subscriptions belong to a database, slots to the server.
std::string link_name(Shard shard) { return "tocsin_move_" + std::to_string(shard); }
std::string slot_name(pqxx::transaction_base& tx, const ShardMove& move) {
  return link_name(move.shard) + "_" +
         tx.exec1("SELECT oid FROM pg_database WHERE datname = current_database()")[0].c_str();
}

std::string row_filter(Shard shard) { return " WHERE ((job_id & 1023) = " + std::to_string(shard) + ")"; }

std::vector<std::string> tables_of(pqxx::transaction_base& tx, Shard shard) {
  std::vector<std::string> tables;
  for (const auto& row :
       tx.exec_params("SELECT format('tocsin.job_live_%s', lpad(($1::integer % 8)::text, 4, '0')) UNION ALL (SELECT "
                      "p.relid::regclass::text FROM pg_partition_tree('tocsin.job_history') p WHERE p.isleaf AND "
                      "p.level > 1 ORDER BY 1)"
                      " UNION ALL SELECT 'tocsin.relayed'",
                      static_cast<int>(shard)))
    tables.emplace_back(row[0].c_str());
  return tables;
}

// Those who write wait behind this lock: rather none than for long.
void wait_briefly(pqxx::transaction_base& tx) { tx.exec0("SET LOCAL lock_timeout = '300ms'"); }

std::string call(const char* function, const ShardMove& move) {
  return "SELECT tocsin." + std::string(function) + "(" + std::to_string(move.shard) + "::smallint)";
}

}  // namespace

const char* to_string(ShardMove::State state) {
  switch (state) {
    case ShardMove::State::copying:
      return "copying";
    case ShardMove::State::switching:
      return "switching";
    case ShardMove::State::switched:
      return "switched";
    case ShardMove::State::aborting:
      return "aborting";
  }
  return "?";
}

Status PgMoveStore::change(const ShardMove& move, const std::function<void(pqxx::work&)>& work) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::work tx(connection);
    const auto mine = tx.exec_params("SELECT FROM tocsin.move WHERE shard = $1 AND driver = $2 FOR UPDATE",
                                     static_cast<int>(move.shard), move.driver);
    if (mine.size() != 1) throw TakenOver();
    work(tx);
    tx.commit();
    return Unit{};
  });
}

// ---- home

Result<std::vector<ShardMove>> PgMoveStore::list() {
  return session_.read<std::vector<ShardMove>>([&](pqxx::connection& connection) {
    std::vector<ShardMove> moves;
    pqxx::nontransaction tx(connection);
    for (const auto& row : tx.exec("SELECT " + std::string(kColumns) + " FROM tocsin.move ORDER BY shard"))
      moves.push_back(move_from(row));
    return moves;
  });
}

Result<std::optional<ShardMove>> PgMoveStore::take(Shard shard, std::optional<Place> target) {
  using Taken = std::optional<ShardMove>;
  return session_.write<Taken>([&](pqxx::connection& connection) -> Taken {
    pqxx::work tx(connection);
    const int number = shard;
    const std::string returning = std::string(" RETURNING ") + kColumns;
    auto rows = tx.exec_params("UPDATE tocsin.move SET driver = driver + 1 WHERE shard = $1" + returning, number);
    if (rows.empty()) {
      if (!target) return {};
      rows = tx.exec_params(
          "INSERT INTO tocsin.move (shard, source, target) SELECT $1::integer, p.places[$1::integer + 1], $2::smallint "
          "FROM "
          "tocsin.shard_map p WHERE p.places[$1::integer + 1] <> $2::smallint" +
              returning,
          number, *target);
      if (rows.empty()) return {};
    }
    const ShardMove move = move_from(rows[0]);
    if (target && move.target != *target)
      throw Refused("shard " + std::to_string(shard) +
                    " is on its way to another database: let that end, or roll it back with --abort");
    tx.commit();
    return move;
  });
}

Status PgMoveStore::set_state(ShardMove& move, ShardMove::State state) {
  auto done = change(move, [&](pqxx::work& tx) {
    const auto changed = tx.exec_params(
        "UPDATE tocsin.move SET state = $2, changed_at = clock_timestamp() WHERE shard = $1 AND state = $3",
        static_cast<int>(move.shard), to_string(state), to_string(move.state));
    if (changed.affected_rows() != 1) throw TakenOver();
  });
  if (done) move.state = state;
  return done;
}

Status PgMoveStore::flip(ShardMove& move) {
  auto done = change(move, [&](pqxx::work& tx) {
    const auto changed = tx.exec_params(
        "UPDATE tocsin.move SET state = 'switched', changed_at = clock_timestamp() WHERE shard = $1 AND state = "
        "'switching'",
        static_cast<int>(move.shard));
    const auto flipped = tx.exec_params(
        "UPDATE tocsin.shard_map SET version = version + 1, places[$1::integer + 1] = $3::smallint WHERE "
        "places[$1::integer + 1] = $2::smallint",
        static_cast<int>(move.shard), move.source, move.target);
    if (changed.affected_rows() != 1 || flipped.affected_rows() != 1) throw TakenOver();
    tx.exec0("NOTIFY tocsin_member");
  });
  if (done) move.state = ShardMove::State::switched;
  return done;
}

Status PgMoveStore::end(const ShardMove& move) {
  return change(move, [&](pqxx::work& tx) {
    tx.exec_params0("DELETE FROM tocsin.move WHERE shard = $1", static_cast<int>(move.shard));
  });
}

// ---- source and target

Status PgMoveStore::note(const ShardMove& move) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::work tx(connection);
    const auto noted = tx.exec_params(
        "INSERT INTO tocsin.move AS m (shard, source, target, driver) VALUES ($1, $2, $3, $4) ON CONFLICT (shard) DO "
        "UPDATE SET driver = excluded.driver WHERE m.driver <= excluded.driver AND m.source = excluded.source AND "
        "m.target = excluded.target",
        static_cast<int>(move.shard), move.source, move.target, move.driver);
    if (noted.affected_rows() != 1) throw TakenOver();
    tx.commit();
    return Unit{};
  });
}

Status PgMoveStore::forget(const ShardMove& move) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::work tx(connection);
    tx.exec_params0("DELETE FROM tocsin.move WHERE shard = $1 AND driver <= $2", static_cast<int>(move.shard),
                    move.driver);
    tx.commit();
    return Unit{};
  });
}

Result<std::vector<std::string>> PgMoveStore::tables(Shard shard) {
  return session_.read<std::vector<std::string>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    return tables_of(tx, shard);
  });
}

Result<std::int64_t> PgMoveStore::delete_rows(const ShardMove& move, const std::string& table) {
  std::int64_t n = 0;
  auto done = change(move, [&](pqxx::work& tx) {
    n = tx.exec_params1("SELECT tocsin.forget_shard($1::regclass, $2::smallint)", table,
                        static_cast<int>(move.shard))[0]
            .as<std::int64_t>();
  });
  if (!done) return done.error();
  return n;
}

// ---- source

Status PgMoveStore::publish(const ShardMove& move) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    if (tx.exec1("SHOW wal_level")[0].as<std::string>() != "logical")
      throw Refused("the server has wal_level = " + tx.exec1("SHOW wal_level")[0].as<std::string>() +
                    "; moving a shard away needs wal_level = logical (ALTER SYSTEM SET wal_level = logical, then "
                    "restart the server)");
    const std::string name = link_name(move.shard);
    std::set<std::string> published;
    const bool is_there = !tx.exec("SELECT FROM pg_publication WHERE pubname = '" + name + "'").empty();
    for (const auto& row :
         tx.exec("SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = '" + name + "'"))
      published.emplace(row[0].c_str());
    std::string missing;
    for (const std::string& table : tables_of(tx, move.shard)) {
      if (published.contains(table)) continue;
      missing += (missing.empty() ? "" : ", ") + table + row_filter(move.shard);
    }
    if (!is_there)
      tx.exec("CREATE PUBLICATION " + name + " FOR TABLE " + missing + " WITH (publish = 'insert, update, delete')");
    else if (!missing.empty())
      tx.exec("ALTER PUBLICATION " + name + " ADD TABLE " + missing);
    const std::string slot = slot_name(tx, move);
    // By hand: made by CREATE SUBSCRIPTION it would wait for ever where both databases are of one server, for it waits
    // for all transactions, that one too.
    if (tx.exec("SELECT FROM pg_replication_slots WHERE slot_name = '" + slot + "'").empty())
      tx.exec("SELECT pg_create_logical_replication_slot('" + slot + "', 'pgoutput')");
    return Unit{};
  });
}

Status PgMoveStore::unpublish(const ShardMove& move) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const std::string slot = slot_name(tx, move);
    tx.exec("SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE active AND slot_name = '" +
            slot + "'");
    tx.exec("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '" + slot + "'");
    tx.exec("DROP PUBLICATION IF EXISTS " + link_name(move.shard));
    return Unit{};
  });
}

Status PgMoveStore::freeze(const ShardMove& move) {
  return change(move, [&](pqxx::work& tx) {
    wait_briefly(tx);
    tx.exec(call("freeze_shard", move));
  });
}

Status PgMoveStore::unfreeze(const ShardMove& move) {
  return change(move, [&](pqxx::work& tx) {
    wait_briefly(tx);
    tx.exec(call("thaw_shard", move));
    tx.exec(call("open_shard", move));
  });
}

Status PgMoveStore::thaw(const ShardMove& move) {
  return change(move, [&](pqxx::work& tx) {
    wait_briefly(tx);
    tx.exec(call("thaw_shard", move));
  });
}

Result<std::string> PgMoveStore::position() {
  return session_.read<std::string>([](pqxx::connection& connection) -> std::string {
    return pqxx::nontransaction(connection).exec1("SELECT pg_current_wal_flush_lsn()")[0].c_str();
  });
}

Result<std::int64_t> PgMoveStore::behind(const ShardMove& move, const std::string& position) {
  return session_.read<std::int64_t>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const auto rows = tx.exec_params(
        "SELECT greatest(0, pg_wal_lsn_diff($1::pg_lsn, confirmed_flush_lsn))::bigint FROM pg_replication_slots WHERE "
        "slot_name = $2",
        position, slot_name(tx, move));
    if (rows.empty())
      throw Refused("the replication slot of the move is gone from the source: roll the move back with --abort");
    return rows[0][0].as<std::int64_t>();
  });
}

Result<std::string> PgMoveStore::take_counts(const ShardMove& move) {
  std::string counts;
  auto done = change(move, [&](pqxx::work& tx) { counts = tx.exec1(call("take_counts", move))[0].c_str(); });
  if (!done) return done.error();
  return counts;
}

// ---- target

Status PgMoveStore::make_history(const std::vector<std::string>& tables) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::work tx(connection);
    std::set<std::string> days;
    for (const std::string& table : tables)
      if (table.find("job_history_") != std::string::npos) days.insert(table.substr(table.rfind('_') + 1));
    for (const std::string& day : days) tx.exec_params("SELECT tocsin.ensure_history($1::date, $1::date)", day);
    tx.commit();
    return Unit{};
  });
}

Status PgMoveStore::subscribe(const ShardMove& move, const std::string& source) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const std::string name = link_name(move.shard);
    const auto known = tx.exec("SELECT FROM pg_subscription WHERE subname = '" + name +
                               "' AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())");
    if (!known.empty()) {
      tx.exec("ALTER SUBSCRIPTION " + name + " REFRESH PUBLICATION");
      return Unit{};
    }
    // The slot's name has the source's database in it.
    pqxx::connection at_source(source);
    const std::string slot = [&] {
      pqxx::nontransaction there(at_source);
      return slot_name(there, move);
    }();
    // What it has confirmed must be on its disk: the source's rows will be deleted.
    tx.exec("CREATE SUBSCRIPTION " + name + " CONNECTION " + tx.quote(source) + " PUBLICATION " + name +
            " WITH (create_slot = false, slot_name = '" + slot + "', synchronous_commit = 'on')");
    return Unit{};
  });
}

Result<std::pair<int, int>> PgMoveStore::copied(const ShardMove& move) {
  return session_.read<std::pair<int, int>>([&](pqxx::connection& connection) {
    const auto row = pqxx::nontransaction(connection)
                         .exec1(
                             "SELECT count(*) FILTER (WHERE r.srsubstate = 'r'), count(*) FROM pg_subscription_rel "
                             "r JOIN pg_subscription s ON s.oid = r.srsubid WHERE s.subname = '" +
                             link_name(move.shard) +
                             "' AND s.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())");
    return std::pair(row[0].as<int>(), row[1].as<int>());
  });
}

Status PgMoveStore::unsubscribe(const ShardMove& move) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const std::string name = link_name(move.shard);
    if (tx.exec("SELECT FROM pg_subscription WHERE subname = '" + name +
                "' AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())")
            .empty())
      return Unit{};
    // Without its slot, which is dropped at the source: this must work while the source is away.
    tx.exec("ALTER SUBSCRIPTION " + name + " DISABLE");
    tx.exec("ALTER SUBSCRIPTION " + name + " SET (slot_name = NONE)");
    tx.exec("DROP SUBSCRIPTION " + name);
    return Unit{};
  });
}

Status PgMoveStore::open(const ShardMove& move) {
  return change(move, [&](pqxx::work& tx) {
    wait_briefly(tx);
    tx.exec(call("open_shard", move));
  });
}

Status PgMoveStore::add_counts(const ShardMove& move, const std::string& counts) {
  return change(move, [&](pqxx::work& tx) {
    tx.exec_params("SELECT tocsin.add_counts($1::smallint, $2::jsonb)", static_cast<int>(move.shard), counts);
  });
}

}  // namespace tocsin
