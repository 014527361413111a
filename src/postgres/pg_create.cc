#include "postgres/pg_create.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_set>

#include "base/assert.h"
#include "core/requested_time.h"
#include "postgres/binary_array.h"
#include "postgres/job_rows.h"
#include "postgres/part_writer.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

template <class Array>
void add_text_or_null(Array& array, const std::string& text) {
  if (text.empty()) {
    array.add_null();
  } else {
    array.add_text(text);
  }
}

template <class Array, class T>
void add_or_null(Array& array, bool is_given, T value) {
  if (is_given) {
    array.add(value);
  } else {
    array.add_null();
  }
}

std::set<TypeId> types_from(const pqxx::field& array) {
  std::set<TypeId> types;
  auto parser = array.as_array();
  for (auto [juncture, text] = parser.get_next(); juncture != pqxx::array_parser::juncture::done;
       std::tie(juncture, text) = parser.get_next())
    if (juncture == pqxx::array_parser::juncture::string_value) types.insert(std::stoi(text));
  return types;
}

}  // namespace

PgCreate::PgCreate(Session& session, std::span<const NewJob> jobs, const std::vector<JobId>& ids,
                   std::uint64_t drawn_on, CreateMode mode)
    : session_(session),
      jobs_(jobs),
      ids_(ids),
      drawn_on_(drawn_on),
      mode_(mode),
      replies_(jobs.size()),
      is_settled_(jobs.size(), false) {}

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
    // If the answer of the single statement is lost, the replies are not known: these are the ids to look for.
    for (std::size_t i = 0; i < jobs_.size(); ++i) replies_[i].job_id = ids_[i];
    return session_.write([&](pqxx::nontransaction& tx) {
      refuse_old_ids();
      insert(tx, false);
    });
  }
  return session_.write_on_connection<Unit>([&](pqxx::connection& connection) {
    refuse_old_ids();
    pqxx::work tx(connection);
    insert(tx, false);
    insert(tx, true);
    settle_keys(tx);
    if (is_undone_by_refusal(mode_)) {
      for (const CreateReply& reply : replies_) {
        if (reply.is_refused()) return Unit{};  // leaving without a commit undoes everything
      }
    }
    tx.commit();
    return Unit{};
  });
}

// The session may have connected again since the ids were drawn.
void PgCreate::refuse_old_ids() {
  if (session_.connections() == drawn_on_) return;
  has_bad_ids_ = true;
  throw Busy("the ids were drawn on another connection");
}

void PgCreate::insert(pqxx::transaction_base& tx, bool keyed) {
  try {
    exec_insert(tx, keyed);
  } catch (const pqxx::unique_violation&) {
    has_bad_ids_ = session_.last_server_error().duplicate_id().has_value();
    throw;
  }
}

void PgCreate::exec_insert(pqxx::transaction_base& tx, bool keyed) {
  using Of = BinaryArray::Of;
  BinaryArray ids(Of::int8), shards(Of::int2), types(Of::int4), at(Of::timestamptz), in(Of::int8),
      max_attempts(Of::int2), biz_ids(Of::text), traceparents(Of::text), attributes(Of::jsonb), keys(Of::text),
      times(Of::text), own_max(Of::int4);
  Index index;
  std::set<TypeId> kinds;
  attributes.reserve(jobs_.size() * 256);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const NewJob& job = jobs_[i];
    if (job.idempotency_key.has_value() != keyed) continue;
    index.emplace(ids_[i], i);
    ids.add(ids_[i]);
    shards.add(shard_of(ids_[i]));
    types.add(job.type_id);
    kinds.insert(job.type_id);
    add_or_null(at, job.when.at.has_value(), job.when.at.value_or(WallTime()));
    add_or_null(in, job.when.in.has_value(), job.when.in.value_or(Duration(0)).count());
    max_attempts.add(job.max_attempts);
    biz_ids.add_text(job.biz_id);
    add_text_or_null(traceparents, job.traceparent.value_or(""));
    add_text_or_null(attributes, job.attribute_json);
    if (!keyed) continue;
    keys.add_text(*job.idempotency_key);
    times.add_text(requested_time(job.when));
    add_or_null(own_max, job.has_own_max_attempts, job.max_attempts);
  }
  if (index.empty()) return;
  const auto rows =
      keyed ? exec(tx, session_.prepared("create_keyed"), ids.parameter(), shards.parameter(), types.parameter(),
                   at.parameter(), in.parameter(), max_attempts.parameter(), biz_ids.parameter(),
                   traceparents.parameter(), attributes.parameter(), keys.parameter(), times.parameter(),
                   own_max.parameter(), waits_for_keys(mode_) ? nullptr : kKeyLockWait, array_of(kinds))
            : exec(tx, session_.prepared("create"), ids.parameter(), shards.parameter(), types.parameter(),
                   at.parameter(), in.parameter(), max_attempts.parameter(), biz_ids.parameter(),
                   traceparents.parameter(), attributes.parameter(), is_undone_by_refusal(mode_), array_of(kinds));
  const auto created = [&](std::size_t i, WallTime now) {
    const When& when = jobs_[i].when;
    const WallTime due = when.at ? *when.at : now + *when.in;  // as the statement computes it
    replies_[i] = {CreateReply::Kind::created, ids_[i], due, std::max(due, now), now, {}};
    is_settled_[i] = true;
  };
  if (keyed) {
    refuse_closed_types(rows[0][2], index);
    for (std::size_t row = 1; row < rows.size(); ++row)
      created(index.at(rows[row][0].as<JobId>()), time_of(rows[row][1]));
    return;
  }
  if (refuse_closed_types(rows[0][2], index) && is_undone_by_refusal(mode_)) return;
  TOCSIN_ASSERT(rows.size() == 1 && rows[0][1].as<std::size_t>() == index.size());
  for (const auto& [id, i] : index) created(i, time_of(rows[0][0]));
}

bool PgCreate::refuse_closed_types(const pqxx::field& closed, Index& index) {
  if (text_of(closed) == "{}") return false;
  const std::set<TypeId> types = types_from(closed);
  std::erase_if(index, [&](const auto& entry) {
    const std::size_t i = entry.second;
    if (!types.contains(jobs_[i].type_id)) return false;
    replies_[i] = {CreateReply::Kind::type_removed, 0, {}, {}, {}, {}};
    is_settled_[i] = true;
    return true;
  });
  return true;
}

std::unordered_set<std::size_t> PgCreate::created_twice(pqxx::transaction_base& tx) {
  PgArray types, biz_ids, keys;
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (!jobs_[i].idempotency_key || !is_settled_[i]) continue;
    items.push_back(i);
    types.add(jobs_[i].type_id);
    biz_ids.add_text(jobs_[i].biz_id);
    keys.add_text(*jobs_[i].idempotency_key);
  }
  std::unordered_set<std::size_t> found;
  if (items.empty()) return found;
  for (const auto& row :
       exec(tx, session_.prepared("keys_in_history"), types.literal(), biz_ids.literal(), keys.literal()))
    found.insert(items[row[0].as<std::size_t>() - 1]);
  return found;
}

void PgCreate::settle_keys(pqxx::transaction_base& tx) {
  const std::unordered_set<std::size_t> twice = created_twice(tx);
  std::unordered_set<JobId> undone;
  for (const std::size_t i : twice) undone.insert(ids_[i]);
  PgArray ids, shards, types, biz_ids, keys, times, attributes, own_max;
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const NewJob& job = jobs_[i];
    if (!job.idempotency_key || (is_settled_[i] && !twice.contains(i))) continue;
    items.push_back(i);
    ids.add(ids_[i]);
    shards.add(shard_of(ids_[i]));
    types.add(job.type_id);
    biz_ids.add_text(job.biz_id);
    keys.add_text(*job.idempotency_key);
    times.add_text(requested_time(job.when));
    add_text_or_null(attributes, job.attribute_json);
    add_or_null(own_max, job.has_own_max_attempts, job.max_attempts);
  }
  if (items.empty()) return;
  // A statement of its own: its snapshot sees a job that went to history while the insert waited for it.
  const auto rows = exec(tx, session_.prepared("find_by_key"), ids.literal(), shards.literal(), types.literal(),
                         biz_ids.literal(), keys.literal(), times.literal(), attributes.literal(), own_max.literal());
  using Kind = CreateReply::Kind;
  std::vector<std::size_t> to_undo;
  std::vector<Update> updates;
  for (const auto& row : rows) {
    if (undone.contains(row["job_id"].as<JobId>())) continue;  // another item of this call made it
    const std::size_t item = items[row["ord"].as<std::size_t>() - 1];
    if (is_settled_[item]) to_undo.push_back(item);
    is_settled_[item] = true;
    Job existing = job_from_row(row);
    const OnConflict rule = jobs_[item].on_conflict;
    if (rule == OnConflict::keep)
      settle(item, row["is_same"].as<bool>(false) ? Kind::existing : Kind::key_reused, std::move(existing));
    else if (rule == OnConflict::reject)
      settle(item, Kind::rejected, std::move(existing));
    else if (existing.status != JobStatus::pending)
      settle(item, Kind::not_pending, std::move(existing));
    else
      updates.push_back({item, std::move(existing)});
  }
  update_existing(tx, std::move(updates));
  undo(tx, to_undo);
  for (bool settled : is_settled_) {
    if (settled) continue;
    // Its key's job vanished between two statements, or not the key was taken, but the id.
    has_bad_ids_ = true;
    throw Busy("the holder of an idempotency key changed");
  }
}

void PgCreate::undo(pqxx::transaction_base& tx, const std::vector<std::size_t>& items) {
  if (items.empty()) return;
  PgArray shards, ids;
  for (std::size_t item : items) {
    shards.add(shard_of(ids_[item]));
    ids.add(ids_[item]);
  }
  exec(tx, session_.prepared("undo_create"), shards.literal(), ids.literal());
}

void PgCreate::settle(std::size_t item, CreateReply::Kind kind, Job existing) {
  replies_[item] = {
      kind, existing.job_id, existing.action_time, existing.fire_at, existing.gmt_create, std::move(existing)};
}

void PgCreate::update_existing(pqxx::transaction_base& tx, std::vector<Update> updates) {
  using Kind = CreateReply::Kind;
  std::ranges::sort(updates, {}, &Update::item);
  while (!updates.empty()) {
    // A statement changes a row once, so of several items with one key each goes into a statement of its own.
    std::map<JobId, Update> round;
    std::vector<Update> rest;
    for (Update& update : updates) {
      const JobId id = update.existing.job_id;
      if (const auto [it, is_first] = round.try_emplace(id, std::move(update)); !is_first)
        rest.push_back(std::move(update));  // try_emplace() did not move from it
    }
    for (const auto& row : update_all(tx, round)) {
      Job job = job_from_row(row);
      const auto done = round.extract(job.job_id);
      settle(done.mapped().item, Kind::updated, std::move(job));
    }
    // Jobs left in `round` were not changed: their time wins already, or they are not pending any more.
    JobArrays keys;
    for (const auto& [id, update] : round) keys.add(id);
    std::unordered_set<JobId> pending;
    if (!round.empty()) {
      for (const auto& row : exec(tx, session_.prepared("still_pending"), keys.shards.literal(), keys.jobs.literal()))
        pending.insert(row[0].as<JobId>());
    }
    // A job that is not pending any more has changed since it was read: the answer has its present state.
    std::vector<JobId> changed;
    for (const auto& [id, update] : round)
      if (!pending.contains(id)) changed.push_back(id);
    auto now = changed.empty() ? std::unordered_map<JobId, Job>() : find_jobs(session_, tx, changed);
    for (auto& [id, update] : round) {
      const auto found = now.find(id);
      if (found != now.end()) update.existing = std::move(found->second);
      settle(update.item, pending.contains(id) ? Kind::existing : Kind::not_pending, std::move(update.existing));
    }
    updates = std::move(rest);
  }
}

pqxx::result PgCreate::update_all(pqxx::transaction_base& tx, const std::map<JobId, Update>& updates) {
  PgArray shards, ids, at, in, attributes, max_attempts, times, own_max, rules;
  for (const auto& [id, update] : updates) {
    const NewJob& job = jobs_[update.item];
    shards.add(shard_of(id));
    ids.add(id);
    at.add(job.when.at);
    add_or_null(in, job.when.in.has_value(), job.when.in.value_or(Duration(0)).count());
    add_text_or_null(attributes, job.attribute_json);
    max_attempts.add(job.max_attempts);
    times.add_text(requested_time(job.when));
    add_or_null(own_max, job.has_own_max_attempts, job.max_attempts);
    rules.add_text(job.on_conflict == OnConflict::earliest ? "earliest"
                   : job.on_conflict == OnConflict::latest ? "latest"
                                                           : "replace");
  }
  return exec(tx, session_.prepared("update_existing"), shards.literal(), ids.literal(), at.literal(), in.literal(),
              attributes.literal(), max_attempts.literal(), times.literal(), own_max.literal(), rules.literal());
}

}  // namespace tocsin
