#include "postgres/pg_type_store.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

using nlohmann::json;

// A removal waits this long for transactions that were open when it began. It polls, because PostgreSQL has no call
// that waits for transactions by their ids.
constexpr int kMostTries = 200;
constexpr std::chrono::milliseconds kPause{10};
constexpr const char* kShortLockWait = "SET LOCAL lock_timeout = '1s'";

Duration ms(std::int64_t n) { return std::chrono::milliseconds(n); }
std::int64_t in_ms(Duration length) { return std::chrono::duration_cast<std::chrono::milliseconds>(length).count(); }

// Stored form of the policies. DO NOT CHANGE the keys: rows hold them.
std::string to_text(const Backoff& backoff) {
  if (backoff.delays.empty()) {
    return json{{"base_ms", in_ms(backoff.base)},
                {"factor", backoff.factor},
                {"max_ms", in_ms(backoff.max)},
                {"jitter", backoff.jitter}}
        .dump();
  }
  json delays = json::array();
  for (Duration delay : backoff.delays) delays.push_back(in_ms(delay));
  return json{{"delays_ms", delays}}.dump();
}

std::string catch_up_text(const BizType& type) {
  json catch_up = json::object();
  if (type.drop_older_than) catch_up["drop_older_than_ms"] = in_ms(*type.drop_older_than);
  if (type.catch_up_rate_per_s) catch_up["rate_per_s"] = *type.catch_up_rate_per_s;
  return catch_up.dump();
}

// Empty: no target.
std::string slo_text(const BizType& type) {
  if (!type.slo) return "";
  return json{{"lateness_ms", in_ms(type.slo->lateness)}, {"share", type.slo->share}}.dump();
}

Backoff backoff_from(const char* text) {
  const json stored = json::parse(text);
  Backoff backoff;
  backoff.base = ms(stored.value("base_ms", in_ms(backoff.base)));
  backoff.factor = stored.value("factor", backoff.factor);
  backoff.max = ms(stored.value("max_ms", in_ms(backoff.max)));
  backoff.jitter = stored.value("jitter", backoff.jitter);
  for (const json& delay : stored.value("delays_ms", json::array()))
    backoff.delays.push_back(ms(delay.get<std::int64_t>()));
  return backoff;
}

bool has_live_jobs(pqxx::transaction_base& tx, TypeId type_id) {
  return tx.exec_params1(sql::statement("has_live_jobs"), type_id)[0].as<bool>();
}

BizType type_from(const pqxx::row& row) {
  BizType type;
  type.type_id = row["type_id"].as<TypeId>();
  type.name = row["name"].c_str();
  type.handler_json = row["handler"].c_str();
  type.handler_kind = json::parse(type.handler_json).value("kind", "");
  type.ttr = ms(row["ttr_ms"].as<std::int64_t>());
  type.max_attempts = row["max_attempts"].as<int>();
  type.backoff = backoff_from(row["backoff"].c_str());
  type.max_running = optional_of<int>(row["max_running"]);
  type.rate_per_s = optional_of<double>(row["rate_per_s"]);
  const json catch_up = json::parse(row["catch_up"].c_str());
  if (catch_up.contains("drop_older_than_ms"))
    type.drop_older_than = ms(catch_up["drop_older_than_ms"].get<std::int64_t>());
  if (catch_up.contains("rate_per_s")) type.catch_up_rate_per_s = catch_up["rate_per_s"].get<double>();
  if (!row["slo"].is_null()) {
    const json slo = json::parse(row["slo"].c_str());
    type.slo = Slo{ms(slo.value("lateness_ms", std::int64_t{0})), slo.value("share", 1.0)};
  }
  type.paused = row["paused"].as<bool>();
  type.paused_until = optional_of<WallTime>(row["paused_until"]);
  type.is_removed = !row["removed_at"].is_null();
  type.gmt_create = time_of(row["gmt_create"]);
  type.gmt_modified = time_of(row["gmt_modified"]);
  return type;
}

}  // namespace

Result<std::vector<BizType>> PgTypeStore::list(Removed removed) {
  return session_.read<std::vector<BizType>>([&](pqxx::nontransaction& tx) {
    std::vector<BizType> types;
    for (const auto& row : exec(tx, session_.prepared("types"))) {
      BizType type = type_from(row);
      if (!type.is_removed || removed == Removed::included) types.push_back(std::move(type));
    }
    return types;
  });
}

Result<std::optional<BizType>> PgTypeStore::find(const std::string& name) {
  return session_.read<std::optional<BizType>>([&](pqxx::nontransaction& tx) -> std::optional<BizType> {
    const auto rows = exec(tx, session_.prepared("type_named"), name);
    if (rows.empty()) return {};
    return type_from(rows[0]);
  });
}

Result<TypeStore::Changes> PgTypeStore::changed_since(WallTime time) {
  return session_.read<Changes>([&](pqxx::nontransaction& tx) {
    Changes changes;
    for (const auto& row : exec(tx, session_.prepared("types_changed"), to_pg(time))) {
      changes.version = {row["types"].as<std::int64_t>(), row["sum"].as<std::int64_t>()};
      if (!row["type_id"].is_null()) changes.types.push_back(type_from(row));
    }
    return changes;
  });
}

Result<bool> PgTypeStore::has_any(std::span<const std::string> names, Removed removed) {
  PgArray array;
  for (const std::string& name : names) array.add_text(name);
  return session_.read<bool>([&](pqxx::nontransaction& tx) {
    return exec1(tx, session_.prepared("has_any_type"), array.literal(), removed == Removed::included)[0].as<bool>();
  });
}

Result<TypeStore::PutReply> PgTypeStore::put(const BizType& type, std::optional<WallTime> version) {
  return session_.transact<PutReply>([&](pqxx::work& tx) {
    const auto& name = session_.prepared("put_type");
    const std::string running = type.max_running ? std::to_string(*type.max_running) : "";
    const std::string rate = type.rate_per_s ? pqxx::to_string(*type.rate_per_s) : "";
    const std::string only = version ? to_pg(*version) : "";
    const auto rows =
        exec(tx, name, type.name, type.handler_json, in_ms(type.ttr), type.max_attempts, to_text(type.backoff),
             type.max_running ? running.c_str() : nullptr, type.rate_per_s ? rate.c_str() : nullptr,
             catch_up_text(type), type.slo ? slo_text(type).c_str() : nullptr, version ? only.c_str() : nullptr);
    if (rows.empty()) return PutReply{{}, false, true};
    tx.exec("NOTIFY tocsin_type");
    return PutReply{type_from(rows[0]), rows[0]["is_new"].as<bool>()};
  });
}

Result<TypeStore::RemoveReply> PgTypeStore::remove(const std::string& name, Registry registry,
                                                   std::optional<WallTime> version) {
  auto removal = begin_removal(name);
  if (!removal && removal.error().field == kLocked) return RemoveReply::jobs_may_come;
  if (!removal) return removal.error();
  if (!removal->is_begun()) return removal->reply;
  removal->registry = registry;
  if (version) removal->version = to_pg(*version);
  auto reply = finish_removal(*removal);
  if (!reply || *reply != RemoveReply::removed) give_up(*removal);
  return reply;
}

Result<PgTypeStore::Removal> PgTypeStore::begin_removal(const std::string& name) {
  return session_.transact<Removal>([&](pqxx::work& tx) -> Removal {
    tx.exec0(kShortLockWait);
    const auto found =
        tx.exec_params("SELECT type_id FROM tocsin.biz_type WHERE name = $1 AND removed_at IS NULL FOR UPDATE", name);
    if (found.empty()) return {RemoveReply::not_found};
    const auto type_id = found[0][0].as<TypeId>();
    if (has_live_jobs(tx, type_id)) {
      // One that was cut short; or another one, which will find these jobs, too.
      tx.exec_params0("UPDATE tocsin.biz_type SET removal_at = NULL WHERE type_id = $1 AND removal_at IS NOT NULL",
                      type_id);
      return {RemoveReply::has_live_jobs};
    }
    return {RemoveReply::removed, type_id,
            tx.exec_params1(sql::statement("begin_removal"), type_id)[0].as<std::string>()};
  });
}

Result<TypeStore::RemoveReply> PgTypeStore::finish_removal(const Removal& removal) {
  const auto are_over = wait_for_older_transactions();
  if (!are_over) return are_over.error();
  if (!*are_over) return RemoveReply::jobs_may_come;
  auto reply = session_.transact<RemoveReply>([&](pqxx::work& tx) {
    // Waits for creates that have seen that the removal began.
    tx.exec0(kShortLockWait);
    tx.exec_params("SELECT FROM tocsin.biz_type WHERE type_id = $1 FOR UPDATE", removal.type_id);
    // Its snapshot is later than the lock, so it sees what they committed.
    if (has_live_jobs(tx, removal.type_id)) return RemoveReply::has_live_jobs;
    const auto done = tx.exec_params0(sql::statement("remove_type"), removal.type_id, removal.began,
                                      removal.registry == Registry::copy,
                                      removal.version.empty() ? nullptr : removal.version.c_str());
    // Another removal has begun, or has ended, or the type was changed.
    if (done.affected_rows() == 0) {
      const auto gone =
          tx.exec_params("SELECT FROM tocsin.biz_type WHERE type_id = $1 AND removed_at IS NOT NULL", removal.type_id);
      return gone.empty() ? RemoveReply::jobs_may_come : RemoveReply::not_found;
    }
    tx.exec("NOTIFY tocsin_type");
    return RemoveReply::removed;
  });
  if (!reply && reply.error().field == kLocked) return RemoveReply::jobs_may_come;
  return reply;
}

void PgTypeStore::give_up(const Removal& removal) {
  // If this fails, creates continue to lock the row until the next removal ends.
  static_cast<void>(session_.write([&](pqxx::nontransaction& tx) {
    tx.exec_params0(sql::statement("give_up_removal"), removal.type_id, removal.began);
  }));
}

Result<bool> PgTypeStore::wait_for_older_transactions() {
  const auto next = session_.write<std::int64_t>([](pqxx::nontransaction& tx) {
    return tx.exec1("SELECT pg_current_xact_id()::text::bigint")[0].as<std::int64_t>();
  });
  if (!next) return next.error();
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(kPause);
    auto are_over = session_.read<bool>([&](pqxx::nontransaction& tx) {
      return tx.exec1("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")[0].as<std::int64_t>() >= *next;
    });
    if (!are_over || *are_over) return are_over;
  }
  return false;
}

Result<std::optional<BizType>> PgTypeStore::set_paused(const std::string& name, bool paused,
                                                       std::optional<WallTime> until) {
  return session_.transact<std::optional<BizType>>([&](pqxx::work& tx) -> std::optional<BizType> {
    const std::string end = until ? to_pg(*until) : "";
    const auto rows = exec(tx, session_.prepared("set_paused"), name, paused, until ? end.c_str() : nullptr);
    if (rows.empty()) return {};
    tx.exec("NOTIFY tocsin_type");
    return type_from(rows[0]);
  });
}

Status PgTypeStore::renew(const std::string& name) {
  return session_.transact([&](pqxx::work& tx) {
    tx.exec_params0(sql::statement("renew_type"), name);
    tx.exec("NOTIFY tocsin_type");
  });
}

Status PgTypeStore::mirror(std::span<const BizType> types) {
  return session_.transact([&](pqxx::work& tx) {
    const auto& name = session_.prepared("mirror_type");
    // A failover of the control database may lose a type, and its name may come back with another id.
    PgArray names, ids, versions;
    for (const BizType& type : types) {
      names.add_text(type.name);
      ids.add(static_cast<std::int64_t>(type.type_id));
      versions.add(type.gmt_modified);
    }
    exec0(tx, session_.prepared("forget_mirrored_type"), names.literal(), ids.literal(), versions.literal());
    // In the same order in every call, so that two calls cannot deadlock.
    std::vector<const BizType*> ordered;
    for (const BizType& type : types) ordered.push_back(&type);
    std::ranges::sort(ordered, {}, [](const BizType* type) { return type->type_id; });
    for (const BizType* type : ordered) {
      const std::string running = type->max_running ? std::to_string(*type->max_running) : "";
      const std::string rate = type->rate_per_s ? pqxx::to_string(*type->rate_per_s) : "";
      const std::string until = type->paused_until ? to_pg(*type->paused_until) : "";
      const std::string slo = slo_text(*type);
      const auto or_null = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
      exec0(tx, name, type->type_id, type->name, type->handler_json, in_ms(type->ttr), type->max_attempts,
            to_text(type->backoff), or_null(running), or_null(rate), catch_up_text(*type), type->paused, or_null(until),
            type->is_removed, to_pg(type->gmt_create), to_pg(type->gmt_modified), or_null(slo));
    }
  });
}

}  // namespace tocsin
