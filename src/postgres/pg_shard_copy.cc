#include "postgres/pg_shard_copy.h"

#include <algorithm>
#include <set>

#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

constexpr Duration kCopyTime = std::chrono::hours(24);
// The SQLSTATE of CREATE SUBSCRIPTION when the target's server does not reach the source. The session itself is sound.
constexpr const char* kConnectionFailure = "08006";

// Publications and subscriptions belong to a database, slots to the server.
std::string link_name(Shard shard) { return "tocsin_move_" + std::to_string(shard); }
std::string slot_name(pqxx::transaction_base& tx, const ShardMove& move) {
  const auto row = tx.exec1("SELECT oid FROM pg_database WHERE datname = current_database()");
  return link_name(move.shard) + "_" + row[0].c_str();
}

// The statement of a file about the subscription of a move.
std::string of_subscription(std::string_view name, const std::string& subscription) {
  return sql::statement(name, {{"subscription", subscription}});
}

bool is_subscribed(pqxx::transaction_base& tx, const std::string& subscription) {
  return !tx.exec(of_subscription("copy_subscription", subscription)).empty();
}

// {{tables}} of a statement that publishes these tables.
std::string published_rows(const std::vector<std::string>& tables, Shard shard) {
  std::string list;
  for (const std::string& table : tables) {
    if (!list.empty()) list += ", ";
    list += sql::statement("parts/published_rows", {{"table", table}, {"shard", std::to_string(shard)}});
  }
  return list;
}

std::string changed(const std::string& subscription, std::string_view change) {
  return sql::statement("copy_alter_subscription", {{"subscription", subscription}, {"change", change}});
}

// `source`: a literal.
std::string connected(const std::string& subscription, std::string_view source) {
  return sql::statement("copy_connect_subscription", {{"subscription", subscription}, {"source", source}});
}

// The tables of jobs that the shard's publication lacks.
std::vector<std::string> unpublished(pqxx::transaction_base& tx, Shard shard) {
  std::set<std::string> published;
  for (const auto& row : tx.exec_params(sql::statement("copy_published_tables"), link_name(shard)))
    published.emplace(row[0].c_str());
  std::vector<std::string> missing;
  for (std::string& table : job_tables(tx, shard))
    if (!published.contains(table)) missing.push_back(std::move(table));
  return missing;
}

}  // namespace

// ---- source

Status PgShardCopy::publish(const ShardMove& move) {
  const std::string name = link_name(move.shard);
  return as_driver(session_, move, [&](pqxx::work& tx) {
    if (tx.exec1("SHOW wal_level")[0].as<std::string>() != "logical")
      throw Refused("the server has wal_level = " + tx.exec1("SHOW wal_level")[0].as<std::string>() +
                    "; moving a shard away needs wal_level = logical (ALTER SYSTEM SET wal_level = logical, then "
                    "restart the server)");
    const bool is_there = !tx.exec_params("SELECT FROM pg_publication WHERE pubname = $1", name).empty();
    const std::string missing = published_rows(unpublished(tx, move.shard), move.shard);
    if (!is_there)
      tx.exec(sql::statement("copy_publish", {{"publication", name}, {"tables", missing}}));
    else if (!missing.empty())
      tx.exec(sql::statement("copy_publish_more", {{"publication", name}, {"tables", missing}}));
  });
}

// Not by CREATE SUBSCRIPTION: if both databases are of one server, that would wait for ever, because a new slot waits
// for every transaction that has written, its own included. Outside of a transaction the driver cannot be checked;
// end_others() ends such calls.
Status PgShardCopy::make_slot(const ShardMove& move) {
  return session_.write(
      [&](pqxx::nontransaction& tx) {
        const std::string slot = slot_name(tx, move);
        if (!tx.exec_params("SELECT FROM pg_replication_slots WHERE slot_name = $1", slot).empty()) return;
        tx.exec0("SET statement_timeout = 0");
        tx.exec_params("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", slot);
        tx.exec0("RESET statement_timeout");
      },
      kCopyTime);
}

Result<bool> PgShardCopy::publishes_all(const ShardMove& move) {
  return session_.read<bool>([&](pqxx::nontransaction& tx) { return unpublished(tx, move.shard).empty(); });
}

Status PgShardCopy::unpublish(const ShardMove& move) {
  return as_driver(session_, move, [&](pqxx::work& tx) {
    tx.exec0(sql::statement("copy_unpublish", {{"publication", link_name(move.shard)}}));
  });
}

Result<std::string> PgShardCopy::slot(const ShardMove& move) {
  return session_.read<std::string>([&](pqxx::nontransaction& tx) { return slot_name(tx, move); });
}

// Creating a slot waits for every transaction that has written, also for one that drops the subscription, which would
// wait for the slot. So the sessions that create or read slots are ended first, and no transaction is open meanwhile.
Status PgShardCopy::drop_slots(const ShardMove& move, const std::string& of_copies) {
  return session_.write([&](pqxx::nontransaction& tx) {
    const std::string slot = slot_name(tx, move);
    const char* const copies = of_copies.empty() ? nullptr : of_copies.c_str();
    const auto busy = tx.exec_params1(sql::statement("copy_end_users_of_slots"), slot, copies);
    if (busy[0].as<int>() == 0) tx.exec_params(sql::statement("copy_drop_slots"), slot, copies);
    if (!tx.exec_params("SELECT FROM pg_replication_slots WHERE slot_name = $1 OR slot_name LIKE $2", slot, copies)
             .empty())
      throw Busy("a replication slot of the move is still in use");
  });
}

Result<bool> PgShardCopy::has_slots(const std::vector<std::string>& names) {
  return session_.read<bool>([&](pqxx::nontransaction& tx) {
    return std::ranges::none_of(
        names, [&](const std::string& name) { return tx.exec_params(sql::statement("copy_has_slot"), name).empty(); });
  });
}

Result<std::string> PgShardCopy::position() {
  return session_.read<std::string>(
      [](pqxx::nontransaction& tx) -> std::string { return tx.exec1("SELECT pg_current_wal_flush_lsn()")[0].c_str(); });
}

Result<std::int64_t> PgShardCopy::behind(const ShardMove& move, const std::string& position) {
  return session_.read<std::int64_t>([&](pqxx::nontransaction& tx) {
    const auto rows = tx.exec_params(sql::statement("copy_bytes_behind"), position, slot_name(tx, move));
    if (rows.empty()) throw Busy("the source has lost the replication slot of the move: everything is copied again");
    return rows[0][0].as<std::int64_t>();
  });
}

// ---- target

Result<ShardCopy::Subscription> PgShardCopy::subscription(const ShardMove& move) {
  return session_.read<Subscription>([&](pqxx::nontransaction& tx) {
    const auto known = tx.exec(of_subscription("copy_subscription", link_name(move.shard)));
    if (known.empty()) return Subscription::none;
    return known[0][1].as<bool>() ? Subscription::enabled : Subscription::disabled;
  });
}

Status PgShardCopy::make_history(const std::vector<std::string>& tables) {
  static constexpr std::string_view kHistory = "job_history_";
  // Each commits by itself: this waits for a lock while it holds none.
  return session_.write([&](pqxx::nontransaction& tx) {
    for (const std::string& table : tables) {
      const auto found = table.find(kHistory);
      if (found == table.npos) continue;
      const std::string leaf = table.substr(found + kHistory.size());  // <kind>_<day>
      const auto middle = leaf.find('_');
      tx.exec_params("SELECT tocsin.ensure_history($1::date, $1::date, ARRAY[$2::text])", leaf.substr(middle + 1),
                     leaf.substr(0, middle));
    }
  });
}

Status PgShardCopy::subscribe(const ShardMove& move, const std::string& source, const std::string& slot) {
  const std::string name = link_name(move.shard);
  bool is_known = false;
  auto made = as_driver(session_, move, [&](pqxx::work& tx) {
    const auto known = tx.exec(of_subscription("copy_subscription", name));
    is_known = !known.empty();
    try {
      if (!is_known)
        tx.exec(
            sql::statement("copy_subscribe", {{"subscription", name}, {"source", tx.quote(source)}, {"slot", slot}}));
      else if (source != known[0][0].c_str())
        tx.exec(connected(name, tx.quote(source)));
    } catch (const pqxx::broken_connection& error) {
      if (session_.last_server_error().sql_state() != kConnectionFailure || !tx.conn().is_open()) throw;
      throw Refused("its server does not reach the source: " + std::string(error.what()) +
                    "; --source-url says how it does");
    }
    // Without a publication of that name the server only warns.
    if (!is_known && tx.exec1(of_subscription("copy_subscribed_tables", name))[1].as<int>() == 0)
      throw Refused("the URL by which its server reaches the source leads to another database: see --source-url");
  });
  if (!made || !is_known) return made;
  return session_.write([&](pqxx::nontransaction& tx) { tx.exec0(changed(name, "REFRESH PUBLICATION")); });
}

Result<std::string> PgShardCopy::why_no_worker(const ShardMove& move) {
  return session_.read<std::string>([&](pqxx::nontransaction& tx) -> std::string {
    // One worker applies changes; during the initial copy there is at least one more.
    const auto row = tx.exec1(of_subscription("copy_workers", link_name(move.shard)));
    if (!row[1].as<bool>() || row[2].as<int>() > 1) return "";
    return std::string("no worker is free on its server: max_logical_replication_workers is ") + row[0].c_str() +
           ", and these subscriptions have them all: " + (row[3].is_null() ? "none" : row[3].c_str()) +
           ". Raise it and restart the server, or end the moves that were interrupted";
  });
}

Result<std::int64_t> PgShardCopy::failures(const ShardMove& move) {
  return session_.read<std::int64_t>([&](pqxx::nontransaction& tx) {
    return tx.exec1(of_subscription("copy_failures", link_name(move.shard)))[0].as<std::int64_t>();
  });
}

Result<std::pair<int, int>> PgShardCopy::copied(const ShardMove& move) {
  return session_.read<std::pair<int, int>>([&](pqxx::nontransaction& tx) {
    const auto row = tx.exec1(of_subscription("copy_subscribed_tables", link_name(move.shard)));
    return std::pair(row[0].as<int>(), row[1].as<int>());
  });
}

Result<std::vector<std::string>> PgShardCopy::slots_needed(const ShardMove& move) {
  return session_.read<std::vector<std::string>>([&](pqxx::nontransaction& tx) {
    return column_of<std::string>(tx.exec(of_subscription("copy_slots_needed", link_name(move.shard))));
  });
}

Result<std::string> PgShardCopy::stop_workers(const ShardMove& move) {
  const std::string name = link_name(move.shard);
  auto off = as_driver(session_, move, [&](pqxx::work& tx) {
    if (is_subscribed(tx, name)) tx.exec0(changed(name, "DISABLE"));
  });
  if (!off) return off.error();
  return session_.write<std::string>([&](pqxx::nontransaction& tx) -> std::string {
    // A worker that starts now finds it disabled; one that was about to end may have started another.
    for (int tries = 0;; ++tries) {
      const auto workers = tx.exec(of_subscription("copy_end_workers", name));
      if (workers.empty()) break;
      if (tries == 10) throw Busy("the workers of the subscription do not end");
    }
    const auto slots = tx.exec(of_subscription("copy_slot_pattern", name));
    return slots.empty() ? "" : slots[0][0].c_str();
  });
}

Status PgShardCopy::unsubscribe(const ShardMove& move) {
  const std::string name = link_name(move.shard);
  return as_driver(session_, move, [&](pqxx::work& tx) {
    if (!is_subscribed(tx, name)) return;
    tx.exec0(changed(name, "SET (slot_name = NONE)"));
    // With a connection, DROP would drop slots at the source from inside its transaction, and might wait for ever for a
    // slot whose creation waits for all transactions. So the subscription first gets the connection string of a server
    // that does not exist.
    tx.exec0(connected(name, "'host=/nowhere'"));
    tx.exec0(of_subscription("copy_unsubscribe", name));
  });
}

}  // namespace tocsin
