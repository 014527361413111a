#include "postgres/pg_create.h"

#include <algorithm>
#include <unordered_map>

#include "base/assert.h"
#include "postgres/queries.h"
#include "postgres/text.h"

namespace tocsin {
namespace {

constexpr const char* kShortWait = "50ms";

// The caller's words for the time; the same text as in tocsin.create_job. DO NOT CHANGE: hashed and stored.
std::string time_asked(const When& when) {
  if (when.at) return "at " + std::to_string(when.at->time_since_epoch().count());
  return "in " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(*when.in).count());
}

void add_text_or_null(PgArray& array, const std::string& text) {
  if (text.empty()) {
    array.add_null();
  } else {
    array.add_text(text);
  }
}

}  // namespace

PgCreate::PgCreate(Session& session, std::span<const NewJob> jobs, const std::vector<JobId>& ids, CreateMode mode)
    : session_(session), jobs_(jobs), ids_(ids), mode_(mode), replies_(jobs.size()), is_settled_(jobs.size(), false) {}

bool PgCreate::has_keys() const {
  for (const NewJob& job : jobs_) {
    if (job.idempotency_key) return true;
  }
  return false;
}

std::vector<JobId> PgCreate::created_ids() const {
  std::vector<JobId> ids;
  for (const CreateReply& reply : replies_) {
    if (reply.job_id != 0 && reply.kind == CreateReply::Kind::created) ids.push_back(reply.job_id);
  }
  return ids;
}

Status PgCreate::run() {
  if (!has_keys()) {
    // The replies of a lone statement are not known when its answer is lost: say what would be there.
    for (std::size_t i = 0; i < jobs_.size(); ++i) replies_[i].job_id = ids_[i];
    return session_.write<Unit>([&](pqxx::connection& connection) {
      pqxx::nontransaction tx(connection);
      insert(tx, false);
      return Unit{};
    });
  }
  return session_.write<Unit>([&](pqxx::connection& connection) {
    pqxx::work tx(connection);
    insert(tx, false);
    insert(tx, true);
    settle_keys(tx);
    if (mode_ == CreateMode::all_or_nothing) {
      for (const CreateReply& reply : replies_) {
        if (reply.is_refused()) return Unit{};  // leaving without a commit undoes everything
      }
    }
    tx.commit();
    return Unit{};
  });
}

void PgCreate::insert(pqxx::transaction_base& tx, bool keyed) {
  PgArray ids, shards, types, at, in, max_attempts, biz_ids, traceparents, attributes, keys, times, own_max;
  std::unordered_map<JobId, std::size_t> index;
  attributes.reserve(jobs_.size() * 256);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const NewJob& job = jobs_[i];
    if (job.idempotency_key.has_value() != keyed) continue;
    index.emplace(ids_[i], i);
    ids.add(ids_[i]);
    shards.add(shard_of(ids_[i]));
    types.add(job.type_id);
    at.add(job.when.at);
    if (job.when.in)
      in.add(job.when.in->count());
    else
      in.add_null();
    max_attempts.add(job.max_attempts);
    biz_ids.add_text(job.biz_id);
    add_text_or_null(traceparents, job.traceparent.value_or(""));
    add_text_or_null(attributes, job.attribute_json);
    if (!keyed) continue;
    keys.add_text(*job.idempotency_key);
    times.add_text(time_asked(job.when));
    if (job.has_own_max_attempts)
      own_max.add(job.max_attempts);
    else
      own_max.add_null();
  }
  if (index.empty()) return;
  const auto rows =
      keyed ? exec(tx, session_.prepared("create_keyed", sql::create_keyed), ids.literal(), shards.literal(),
                   types.literal(), at.literal(), in.literal(), max_attempts.literal(), biz_ids.literal(),
                   traceparents.literal(), attributes.literal(), keys.literal(), times.literal(), own_max.literal(),
                   mode_ == CreateMode::each_if_free ? kShortWait : nullptr)
            : exec(tx, session_.prepared("create", sql::create), ids.literal(), shards.literal(), types.literal(),
                   at.literal(), in.literal(), max_attempts.literal(), biz_ids.literal(), traceparents.literal(),
                   attributes.literal());
  const auto created = [&](std::size_t i, WallTime now) {
    const When& when = jobs_[i].when;
    const WallTime due = when.at ? *when.at : now + *when.in;  // as the statement computes it
    replies_[i] = {CreateReply::Kind::created, ids_[i], due, std::max(due, now), now, {}};
    is_settled_[i] = true;
  };
  const auto time = [](const pqxx::field& field) { return wall_time_from_pg({field.c_str(), field.size()}); };
  if (keyed) {
    for (const auto& row : rows) created(index.at(row[0].as<JobId>()), time(row[1]));
    return;
  }
  TOCSIN_ASSERT(rows.size() == 1 && rows[0][1].as<std::size_t>() == index.size());
  for (const auto& [id, i] : index) created(i, time(rows[0][0]));
}

void PgCreate::settle_keys(pqxx::transaction_base& tx) {
  PgArray ids, shards, types, biz_ids, keys, times, attributes, own_max;
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const NewJob& job = jobs_[i];
    if (!job.idempotency_key) continue;
    items.push_back(i);
    ids.add(ids_[i]);
    shards.add(shard_of(ids_[i]));
    types.add(job.type_id);
    biz_ids.add_text(job.biz_id);
    keys.add_text(*job.idempotency_key);
    times.add_text(time_asked(job.when));
    add_text_or_null(attributes, job.attribute_json);
    if (job.has_own_max_attempts)
      own_max.add(job.max_attempts);
    else
      own_max.add_null();
  }
  // A statement of its own: its snapshot sees a job that went to history while the insert waited for it.
  const auto rows =
      exec(tx, session_.prepared("find_by_key", sql::find_by_key), ids.literal(), shards.literal(), types.literal(),
           biz_ids.literal(), keys.literal(), times.literal(), attributes.literal(), own_max.literal());
  std::vector<std::size_t> to_undo;
  for (const auto& row : rows) {
    const std::size_t item = items[row["ord"].as<std::size_t>() - 1];
    if (is_settled_[item]) to_undo.push_back(item);
    settle_existing(tx, item, job_from_row(row), row["is_same"].as<bool>(false));
    is_settled_[item] = true;
  }
  undo(tx, to_undo);
  for (bool settled : is_settled_) {
    // It vanished between two statements.
    if (!settled) throw Busy("the holder of an idempotency key changed");
  }
}

void PgCreate::undo(pqxx::transaction_base& tx, const std::vector<std::size_t>& items) {
  if (items.empty()) return;
  PgArray shards, ids;
  for (std::size_t item : items) {
    shards.add(shard_of(ids_[item]));
    ids.add(ids_[item]);
  }
  exec(tx, session_.prepared("undo_create", sql::undo_create), shards.literal(), ids.literal());
}

void PgCreate::settle_existing(pqxx::transaction_base& tx, std::size_t item, Job existing, bool is_same_body) {
  using Kind = CreateReply::Kind;
  Kind kind = Kind::existing;
  switch (jobs_[item].on_conflict) {
    case OnConflict::keep:
      kind = is_same_body ? Kind::existing : Kind::key_reused;
      break;
    case OnConflict::reject:
      kind = Kind::rejected;
      break;
    case OnConflict::replace:
    case OnConflict::earliest:
    case OnConflict::latest:
      kind = update_existing(tx, item, existing);
      break;
  }
  replies_[item] = {
      kind, existing.job_id, existing.action_time, existing.fire_at, existing.gmt_create, std::move(existing)};
}

CreateReply::Kind PgCreate::update_existing(pqxx::transaction_base& tx, std::size_t item, Job& existing) {
  using Kind = CreateReply::Kind;
  if (existing.status != JobStatus::pending) return Kind::not_pending;
  const NewJob& job = jobs_[item];
  const auto& name = session_.prepared("update_existing", [] {
    return "WITH t AS MATERIALIZED (SELECT coalesce($3::timestamptz, clock_timestamp() + $4::bigint * interval '1 "
           "microsecond') AS at)"
           " UPDATE tocsin.job_live j SET action_time = t.at, fire_at = greatest(t.at, clock_timestamp()), "
           "gmt_modified = clock_timestamp(),"
           " attribute = $5::jsonb, attempts = 0, max_attempts = $6::smallint, body_hash = tocsin.body_hash($7::text, "
           "$5::jsonb, "
           "$8::integer) FROM t"
           " WHERE j.shard = $1::smallint AND j.job_id = $2::bigint AND j.status = 0 AND CASE $9::text WHEN 'earliest' "
           "THEN t.at < j.action_time"
           " WHEN 'latest' THEN t.at > j.action_time ELSE true END RETURNING " +
           std::string(kLiveColumns);
  });
  const auto null_or = [](bool given, std::string text) {
    return given ? std::optional<std::string>(std::move(text)) : std::nullopt;
  };
  const char* rule = job.on_conflict == OnConflict::earliest ? "earliest"
                     : job.on_conflict == OnConflict::latest ? "latest"
                                                             : "replace";
  const auto at = null_or(job.when.at.has_value(), job.when.at ? to_pg(*job.when.at) : "");
  const auto in = null_or(job.when.in.has_value(), job.when.in ? std::to_string(job.when.in->count()) : "");
  const auto attribute = null_or(!job.attribute_json.empty(), job.attribute_json);
  const auto own_max = null_or(job.has_own_max_attempts, std::to_string(job.max_attempts));
  const auto c_str = [](const std::optional<std::string>& text) { return text ? text->c_str() : nullptr; };
  const auto rows = exec(tx, name, static_cast<int>(shard_of(existing.job_id)), existing.job_id, c_str(at), c_str(in),
                         c_str(attribute), job.max_attempts, time_asked(job.when), c_str(own_max), rule);
  if (!rows.empty()) {
    existing = job_from_row(rows[0]);
    return Kind::updated;
  }
  // Either its time already wins, or it stopped being pending since it was read.
  const auto& still = session_.prepared("is_pending", [] {
    return "SELECT 1 FROM tocsin.job_live j WHERE j.shard = $1::smallint AND j.job_id = $2::bigint AND j.status = 0";
  });
  const bool is_pending = !exec(tx, still, static_cast<int>(shard_of(existing.job_id)), existing.job_id).empty();
  return is_pending ? Kind::existing : Kind::not_pending;
}

}  // namespace tocsin
