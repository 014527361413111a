#include "postgres/pg_outbox.h"

#include "base/assert.h"
#include "postgres/text.h"

namespace tocsin {
namespace {

std::string_view view_of(const pqxx::field& field) { return {field.c_str(), field.size()}; }

template <class T>
std::optional<T> optional_of(const pqxx::field& field) {
  if (field.is_null()) return {};
  return field.as<T>();
}

std::string array_of(std::span<const JobId> jobs) {
  PgArray array;
  for (const JobId job : jobs) array.add(job);
  return array.literal();
}

std::string array_of(std::span<const Shard> shards) {
  PgArray array;
  for (const Shard shard : shards) array.add(static_cast<std::int64_t>(shard));
  return array.literal();
}

OutboxEntry entry_from(const pqxx::row& row) {
  OutboxEntry entry;
  entry.job_id = row["job_id"].as<JobId>();
  entry.type_id = row["type_id"].as<TypeId>();
  entry.max_attempts = row["max_attempts"].as<int>();
  entry.is_cancelled = row["is_cancelled"].as<bool>();
  entry.action_time = wall_time_from_pg(view_of(row["action_time"]));
  entry.gmt_create = wall_time_from_pg(view_of(row["gmt_create"]));
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

// Guards: not settled, and nobody else has claimed it lately (or after now: the clock was set back). Looked at again
// under the lock. Reads outbox_due.
std::string claim_statement() {
  const std::string is_free =
      "o.settled_at IS NULL AND (o.claimed_by IS NULL OR o.claimed_at > clock_timestamp() OR o.claimed_at < "
      "clock_timestamp() - CASE WHEN o.claimed_by = $2::bigint THEN interval '1 second' ELSE interval '10 seconds' "
      "END)";
  // What was tried before comes last: a shard that cannot take over holds up no other.
  return "WITH c AS MATERIALIZED (SELECT o.job_id FROM (SELECT shard, true AS is_mine FROM unnest($1::smallint[]) m "
         "(shard) UNION ALL SELECT shard, false FROM unnest($4::smallint[]) f (shard)) s CROSS JOIN LATERAL (SELECT "
         "o.job_id, o.action_time, o.claimed_by FROM tocsin.outbox o WHERE o.shard = s.shard AND (s.is_mine OR "
         "o.gmt_create < clock_timestamp() - interval '10 seconds') AND " +
         is_free +
         " ORDER BY o.action_time, o.job_id LIMIT $3::integer) o ORDER BY o.claimed_by IS NOT NULL, o.action_time, "
         "o.job_id LIMIT $3::integer),"
         " l AS MATERIALIZED (SELECT o.job_id FROM c JOIN tocsin.outbox o ON o.job_id = c.job_id WHERE " +
         is_free +
         " FOR UPDATE OF o SKIP LOCKED)"
         " UPDATE tocsin.outbox o SET claimed_by = $2::bigint, claimed_at = clock_timestamp() FROM l WHERE o.job_id = "
         "l.job_id RETURNING o.*";
}

}  // namespace

Result<bool> PgOutbox::is_empty() {
  return session_.read<bool>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const auto& name = session_.prepared("outbox_is_empty", [] {
      return std::string("SELECT NOT EXISTS (SELECT FROM tocsin.outbox o WHERE o.settled_at IS NULL)");
    });
    return exec1(tx, name)[0].as<bool>();
  });
}

Result<std::vector<OutboxEntry>> PgOutbox::claim(std::span<const Shard> mine, std::span<const Shard> others,
                                                 std::int64_t relay, int limit) {
  return session_.write<std::vector<OutboxEntry>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    std::vector<OutboxEntry> entries;
    const auto& name = session_.prepared("outbox_claim", claim_statement);
    for (const auto& row : exec(tx, name, array_of(mine), relay, limit, array_of(others)))
      entries.push_back(entry_from(row));
    return entries;
  });
}

Status PgOutbox::settle(std::span<const TakenOver> entries) {
  PgArray made, ended, existing, errors;
  for (const TakenOver& entry : entries) {
    if (!entry.existing && entry.error.empty()) {
      made.add(entry.job_id);
      continue;
    }
    ended.add(entry.job_id);
    existing.add(entry.existing);
    add_text(errors, entry.error.empty() ? std::nullopt : std::optional(entry.error));
  }
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    // Whoever handed an entry over, it is handed over. One that was never claimed cannot have been.
    const auto& name = session_.prepared("outbox_settle", [] {
      return std::string(
          "WITH d AS (DELETE FROM tocsin.outbox o WHERE o.job_id = ANY ($1::bigint[]) AND o.claimed_by IS NOT NULL AND "
          "o.settled_at IS NULL)"
          " UPDATE tocsin.outbox o SET settled_at = clock_timestamp(), existing_job_id = e.existing, error = e.error"
          " FROM unnest($2::bigint[], $3::bigint[], $4::text[]) e (job_id, existing, error) WHERE o.job_id = e.job_id "
          "AND o.claimed_by IS NOT NULL AND o.settled_at IS NULL");
    });
    exec0(tx, name, made.literal(), ended.literal(), existing.literal(), errors.literal());
    return Unit{};
  });
}

Result<std::vector<JobId>> PgOutbox::gone(std::span<const JobId> jobs) {
  return session_.read<std::vector<JobId>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    std::vector<JobId> gone;
    for (const auto& row : tx.exec_params("SELECT j FROM unnest($1::bigint[]) j WHERE NOT EXISTS (SELECT FROM "
                                          "tocsin.outbox o WHERE o.job_id = j)",
                                          array_of(jobs)))
      gone.push_back(row[0].as<JobId>());
    return gone;
  });
}

Status PgOutbox::forget_existing() {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction(connection)
        .exec0("DELETE FROM tocsin.outbox WHERE settled_at < clock_timestamp() - interval '7 days' AND error IS NULL");
    return Unit{};
  });
}

Result<OutboxSize> PgOutbox::size() {
  return session_.read<OutboxSize>([&](pqxx::connection& connection) {
    const auto row = pqxx::nontransaction(connection)
                         .exec1(
                             "SELECT w.n, (SELECT count(*) FROM tocsin.outbox WHERE settled_at IS NOT NULL AND error "
                             "IS NOT NULL), coalesce(extract(epoch FROM clock_timestamp() - w.since), 0) * 1000000"
                             " FROM (SELECT count(*) AS n, min(gmt_create) AS since FROM tocsin.outbox WHERE "
                             "settled_at IS NULL) w");
    const auto oldest = static_cast<std::int64_t>(row[2].as<double>());
    return OutboxSize{row[0].as<std::int64_t>(), row[1].as<std::int64_t>(), std::chrono::microseconds(oldest)};
  });
}

Result<std::vector<TakenOver>> PgIntake::take_over(Place source, WallTime valid_until,
                                                   std::span<const OutboxEntry> entries) {
  PgArray jobs, types, max_attempts, cancelled, action_times, created, biz_ids, keys, hashes, attributes;
  for (const OutboxEntry& entry : entries) {
    jobs.add(entry.job_id);
    types.add(entry.type_id);
    max_attempts.add(entry.max_attempts);
    cancelled.add_text(entry.is_cancelled ? "t" : "f");
    action_times.add(entry.action_time);
    created.add(entry.gmt_create);
    biz_ids.add_text(entry.biz_id);
    add_text(keys, entry.idempotency_key);
    hashes.add(entry.body_hash);
    add_text(attributes, entry.attribute_json);
  }
  return session_.write<std::vector<TakenOver>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    const auto& name = session_.prepared("take_over", [] {
      return std::string(
          "SELECT * FROM tocsin.take_over($1::smallint, $2::timestamptz, $3::bigint[], $4::integer[], $5::smallint[], "
          "$6::boolean[], $7::timestamptz[], $8::timestamptz[], $9::text[], $10::text[], $11::bigint[], $12::text[])");
    });
    const auto rows = exec(tx, name, source, to_pg(valid_until), jobs.literal(), types.literal(),
                           max_attempts.literal(), cancelled.literal(), action_times.literal(), created.literal(),
                           biz_ids.literal(), keys.literal(), hashes.literal(), attributes.literal());
    TOCSIN_ASSERT(rows.size() == entries.size());
    std::vector<TakenOver> taken;
    for (const auto& row : rows) {
      TakenOver& one = taken.emplace_back();
      one.job_id = row[0].as<JobId>();
      one.type_id = entries[taken.size() - 1].type_id;
      TOCSIN_ASSERT(one.job_id == entries[taken.size() - 1].job_id);
      if (!row[1].is_null()) one.fire_at = wall_time_from_pg(view_of(row[1]));
      one.existing = optional_of<JobId>(row[2]);
      one.error = row[3].c_str();
    }
    return taken;
  });
}

Result<std::vector<JobId>> PgIntake::remembered(Place source, std::span<const Shard> shards, int limit) {
  return session_.write<std::vector<JobId>>([&](pqxx::connection& connection) {
    pqxx::nontransaction tx(connection);
    // Long after anybody can hold an entry in his hands; both times are this database's, unless the shard has moved.
    tx.exec0("DELETE FROM tocsin.relayed WHERE gone_at < clock_timestamp() - interval '10 minutes'");
    std::vector<JobId> jobs;
    for (const auto& row :
         tx.exec_params("SELECT job_id FROM tocsin.relayed WHERE source = $1::smallint AND (job_id & 1023) = ANY "
                        "($2::bigint[]) AND gone_at IS NULL AND relayed_at < clock_timestamp() - CASE WHEN "
                        "existing_job_id IS NULL "
                        "THEN interval '1 minute' ELSE interval '7 days' END LIMIT $3",
                        source, array_of(shards), limit))
      jobs.push_back(row[0].as<JobId>());
    return jobs;
  });
}

Status PgIntake::note_gone(std::span<const JobId> jobs) {
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::nontransaction(connection)
        .exec_params0(
            "UPDATE tocsin.relayed SET gone_at = clock_timestamp() WHERE job_id = ANY ($1::bigint[]) AND gone_at IS "
            "NULL",
            array_of(jobs));
    return Unit{};
  });
}

}  // namespace tocsin
