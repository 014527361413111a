#include "postgres/pg_outbox.h"

#include "base/assert.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

OutboxEntry entry_from(const pqxx::row& row) {
  OutboxEntry entry;
  entry.job_id = row["job_id"].as<JobId>();
  entry.type_id = row["type_id"].as<TypeId>();
  entry.max_attempts = row["max_attempts"].as<int>();
  entry.is_cancelled = row["is_cancelled"].as<bool>();
  entry.action_time = time_of(row["action_time"]);
  entry.gmt_create = time_of(row["gmt_create"]);
  entry.late_from = optional_of<WallTime>(row["late_from"]);
  entry.changed_at = optional_of<WallTime>(row["changed_at"]);
  entry.biz_id = row["biz_id"].c_str();
  entry.idempotency_key = optional_of<std::string>(row["idempotency_key"]);
  entry.body_hash = optional_of<std::int64_t>(row["body_hash"]);
  entry.attribute_json = optional_of<std::string>(row["attribute"]);
  return entry;
}

void add_text(PgArray& array, const std::optional<std::string>& text) {
  if (text) {
    array.add_text(*text);
  } else {
    array.add_null();
  }
}

}  // namespace

Result<bool> PgOutbox::is_empty() {
  return session_.read<bool>(
      [&](pqxx::nontransaction& tx) { return exec1(tx, session_.prepared("outbox_is_empty"))[0].as<bool>(); });
}

Result<std::vector<OutboxEntry>> PgOutbox::claim(std::span<const Shard> mine, std::span<const Shard> others,
                                                 std::int64_t relay, int limit) {
  return session_.write<std::vector<OutboxEntry>>([&](pqxx::nontransaction& tx) {
    std::vector<OutboxEntry> entries;
    for (const auto& row : exec(tx, session_.prepared("outbox_claim"), array_of(mine), relay, limit, array_of(others)))
      entries.push_back(entry_from(row));
    return entries;
  });
}

Status PgOutbox::settle(std::span<const TakenOver> entries) {
  PgArray made, made_changed, ended, ended_changed, existing, errors;
  for (const TakenOver& entry : entries) {
    if (!entry.existing && entry.error.empty()) {
      made.add(entry.job_id);
      made_changed.add(entry.changed_at);
      continue;
    }
    ended.add(entry.job_id);
    ended_changed.add(entry.changed_at);
    existing.add(entry.existing);
    add_text(errors, entry.error.empty() ? std::nullopt : std::optional(entry.error));
  }
  return session_.write([&](pqxx::nontransaction& tx) {
    exec0(tx, session_.prepared("outbox_settle"), made.literal(), made_changed.literal(), ended.literal(),
          ended_changed.literal(), existing.literal(), errors.literal());
  });
}

Result<std::vector<JobId>> PgOutbox::gone(std::span<const JobId> jobs) {
  return session_.read<std::vector<JobId>>([&](pqxx::nontransaction& tx) {
    return column_of<JobId>(tx.exec_params(sql::statement("outbox_gone"), array_of(jobs)));
  });
}

Status PgOutbox::forget_existing() {
  return session_.write([&](pqxx::nontransaction& tx) {
    tx.exec0("DELETE FROM tocsin.outbox WHERE settled_at < clock_timestamp() - interval '7 days' AND error IS NULL");
  });
}

Result<OutboxSize> PgOutbox::size() {
  return session_.read<OutboxSize>([&](pqxx::nontransaction& tx) {
    const auto row = tx.exec1(sql::statement("outbox_size"));
    const auto oldest = static_cast<std::int64_t>(row[2].as<double>());
    return OutboxSize{row[0].as<std::int64_t>(), row[1].as<std::int64_t>(), std::chrono::microseconds(oldest)};
  });
}

Result<std::vector<bool>> PgOutboxLookup::are_waiting(std::span<const EntryQuery> queries) {
  PgArray jobs, keys;
  for (const EntryQuery& query : queries) {
    jobs.add(query.job_id);
    keys.add_text(query.biz_id);
  }
  return session_.read<std::vector<bool>>([&](pqxx::nontransaction& tx) {
    std::vector<bool> waiting;
    for (const auto& row : exec(tx, session_.prepared("outbox_lookup"), jobs.literal(), keys.literal()))
      waiting.push_back(row[0].as<bool>());
    TOCSIN_ASSERT(waiting.size() == queries.size());
    return waiting;
  });
}

Status PgOutboxLookup::announce() {
  // Not as a write: it may be repeated, and must never leave the session in doubt.
  return session_.read([](pqxx::nontransaction& tx) { tx.exec0("NOTIFY tocsin_outbox"); });
}

Result<ShardsHere> PgOutboxLookup::shards_here() {
  return session_.read<ShardsHere>([&](pqxx::nontransaction& tx) {
    const auto rows = exec(tx, session_.prepared("shards_here"));
    const auto living = rows[0][0], moving = rows[0][1], partners = rows[0][2];
    ShardsHere here;
    if (living.is_null())
      here.living.set();
    else
      for (const auto shard : numbers_from_array<Shard>(living.c_str()))
        here.living.set(static_cast<std::size_t>(shard));
    const auto shards = numbers_from_array<Shard>(moving.c_str());
    const auto databases = numbers_from_array<DatabaseId>(partners.c_str());
    for (std::size_t i = 0; i < shards.size(); ++i) here.partner[shards[i]] = databases[i];
    return here;
  });
}

Result<std::vector<TakenOver>> PgIntake::take_over(DatabaseId source, WallTime valid_until,
                                                   std::span<const OutboxEntry> entries) {
  PgArray jobs, types, max_attempts, cancelled, action_times, created, late_from, changed, biz_ids, keys, hashes,
      attributes;
  for (const OutboxEntry& entry : entries) {
    jobs.add(entry.job_id);
    types.add(entry.type_id);
    max_attempts.add(entry.max_attempts);
    cancelled.add_text(entry.is_cancelled ? "t" : "f");
    action_times.add(entry.action_time);
    created.add(entry.gmt_create);
    late_from.add(entry.late_from);
    changed.add(entry.changed_at);
    biz_ids.add_text(entry.biz_id);
    add_text(keys, entry.idempotency_key);
    hashes.add(entry.body_hash);
    add_text(attributes, entry.attribute_json);
  }
  return session_.write<std::vector<TakenOver>>([&](pqxx::nontransaction& tx) {
    const auto rows = exec(tx, session_.prepared("take_over"), source, to_pg(valid_until), jobs.literal(),
                           types.literal(), max_attempts.literal(), cancelled.literal(), action_times.literal(),
                           created.literal(), late_from.literal(), changed.literal(), biz_ids.literal(), keys.literal(),
                           hashes.literal(), attributes.literal());
    TOCSIN_ASSERT(rows.size() == entries.size());
    std::vector<TakenOver> taken;
    for (const auto& row : rows) {
      TakenOver& one = taken.emplace_back();
      one.job_id = row[0].as<JobId>();
      one.type_id = entries[taken.size() - 1].type_id;
      TOCSIN_ASSERT(one.job_id == entries[taken.size() - 1].job_id);
      one.fire_at = optional_of<WallTime>(row[1]);
      one.existing = optional_of<JobId>(row[2]);
      one.error = row[3].c_str();
      one.changed_at = entries[taken.size() - 1].changed_at;
    }
    return taken;
  });
}

Result<std::vector<JobId>> PgIntake::remembered(DatabaseId source, std::span<const Shard> shards, int limit) {
  return session_.write<std::vector<JobId>>([&](pqxx::nontransaction& tx) {
    // Long after any node can still relay an entry. Both times are this database's, unless the shard has moved.
    tx.exec0("DELETE FROM tocsin.relayed WHERE gone_at < clock_timestamp() - interval '10 minutes'");
    return column_of<JobId>(tx.exec_params(sql::statement("relayed_to_check"), source, array_of(shards), limit));
  });
}

Status PgIntake::note_gone(std::span<const JobId> jobs) {
  return session_.write(
      [&](pqxx::nontransaction& tx) { tx.exec_params0(sql::statement("relayed_gone"), array_of(jobs)); });
}

}  // namespace tocsin
