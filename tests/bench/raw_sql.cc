#include "bench/raw_sql.h"

#include "cli/rest_client.h"
#include "postgres/binary_array.h"
#include "postgres/migrator.h"
#include "postgres/queries.h"
#include "postgres/session.h"
#include "postgres/sql_text.h"
#include "postgres/text.h"

namespace tocsin::bench {
namespace {

constexpr const char* kNode = "raw SQL";
constexpr const char* kLockTimeout = "55P03";
constexpr std::int64_t kSeed = 1;
constexpr int kMaxAttempts = 3;

std::string session_of(const std::string& database) {
  SessionConfig config;
  config.url = database;
  const auto text = connection_string(config);
  if (!text) throw Failure(text.error().message);
  return *text;
}

void require(std::size_t applied, std::size_t asked, const char* verb) {
  if (applied != asked)
    throw Failure(std::string(verb) + " applied to " + std::to_string(applied) + " of " + std::to_string(asked) +
                  " jobs");
}

template <class Range, class Value>
std::string array_of(const Range& range, Value value) {
  PgArray array;
  for (const auto& item : range) array.add(value(item));
  return array.literal();
}

std::string shards_of(std::span<const JobId> ids) {
  return array_of(ids, [](JobId id) { return std::int64_t{shard_of(id)}; });
}

std::string array_of(std::span<const JobId> ids) {
  return array_of(ids, [](JobId id) { return id; });
}

// The same value, once per job.
std::string repeated(std::size_t n, std::int64_t value) {
  PgArray array;
  for (std::size_t i = 0; i < n; ++i) array.add(value);
  return array.literal();
}

}  // namespace

TypeId install_schema(const std::string& database) {
  Session session({database});
  if (const auto done = migrate(session, kDefaultShards, [](const std::string&) {}); !done)
    throw Failure(done.error().message);
  pqxx::connection connection(database);
  pqxx::nontransaction tx(connection);
  return tx
      .exec1(std::string(
                 "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES ('") +
             kType + R"(', '{"kind":"noop"}', 30000, 3, '{}', '{}') RETURNING type_id)")[0]
      .as<TypeId>();
}

RawSql::RawSql(const std::string& database, TypeId type) : connection_(session_of(database)), type_(type) {
  create({}, {});
  fire({});
  claim_and_finish({});
  cancel({});
}

const std::string& RawSql::prepared(const std::string& name, std::string (*make_sql)()) {
  const auto [known, is_new] = prepared_.insert(name);
  if (is_new) connection_.prepare(name, make_sql());
  return *known;
}

std::vector<JobId> RawSql::draw_ids(std::span<const BenchJob> jobs) {
  pqxx::nontransaction tx(connection_);
  const auto rows =
      tx.exec("SELECT nextval('tocsin.job_seq') FROM generate_series(1, " + std::to_string(jobs.size()) + ")");
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto sequence = rows[static_cast<pqxx::result::size_type>(i)][0].as<std::int64_t>();
    ids.push_back(make_job_id(sequence, shard_of(biz_id_of(jobs[i]), kDefaultShards)));
  }
  return ids;
}

void RawSql::create(std::span<const JobId> ids, std::span<const BenchJob> jobs) {
  using Of = BinaryArray::Of;
  const std::size_t n = jobs.size();
  BinaryArray job_ids(Of::int8), shards(Of::int2), types(Of::int4), due(Of::timestamptz), in(Of::int8),
      max_attempts(Of::int2), biz_ids(Of::text), traceparents(Of::text), attributes(Of::jsonb);
  attributes.reserve(n * 256);
  for (std::size_t i = 0; i < n; ++i) {
    job_ids.add(ids[i]);
    shards.add(shard_of(ids[i]));
    types.add(type_);
    due.add(jobs[i].due);
    in.add_null();
    max_attempts.add(kMaxAttempts);
    biz_ids.add_text(biz_id_of(jobs[i]));
    traceparents.add_null();
    attributes.add_text(attribute_of(jobs[i]));
  }
  pqxx::nontransaction tx(connection_);
  const auto rows = tx.exec_prepared(prepared("create", [] { return sql::statement("create"); }), job_ids.parameter(),
                                     shards.parameter(), types.parameter(), due.parameter(), in.parameter(),
                                     max_attempts.parameter(), biz_ids.parameter(), traceparents.parameter(),
                                     attributes.parameter(), false, "{" + std::to_string(type_) + "}");
  require(rows[0][1].as<std::size_t>(), n, "create");
}

void RawSql::fire(std::span<const JobId> ids) {
  const auto fire_by = [&](const char* verb) {
    if (prepared_.insert(verb).second) connection_.prepare(verb, sql::over(verb, sql::kLive));
    pqxx::nontransaction tx(connection_);
    require(tx.exec_prepared(verb, shards_of(ids), array_of(ids), kNode, repeated(ids.size(), type_)).size(),
            ids.size(), "fire");
  };
  try {
    fire_by("fire");
  } catch (const pqxx::sql_error& error) {
    if (error.sqlstate() != kLockTimeout) throw;
    fire_by("fire_skipping");  // as a node does
  }
}

std::size_t RawSql::fire_due(Shard shard, int limit) {
  const int table = sql::live_table_of(shard);
  const std::string name = "fire_due_" + std::to_string(table);
  if (prepared_.insert(name).second) connection_.prepare(name, sql::over("fire_due", sql::live_table(table)));
  pqxx::nontransaction tx(connection_);
  return tx.exec_prepared(name, shard, type_, "-infinity", "infinity", limit, kNode, 0).size();
}

void RawSql::claim_and_finish(std::span<const JobId> ids) {
  const std::size_t n = ids.size();
  const std::string shards = shards_of(ids);
  std::vector<JobId> claimed;
  PgArray tokens, messages;
  {
    pqxx::nontransaction tx(connection_);
    const auto& name = prepared("claim", [] { return sql::over("claim", sql::kLive); });
    const auto rows =
        tx.exec_prepared(name, shards, array_of(ids), repeated(n, 30'000'000), kSeed, kNode, "off", repeated(n, type_));
    require(rows.size(), n, "claim");
    for (const auto& row : rows) {
      claimed.push_back(row["job_id"].as<JobId>());
      tokens.add(row["claim_token"].as<std::int64_t>());
      messages.add_text("");
    }
  }
  constexpr std::int64_t kDone = 2;
  pqxx::nontransaction tx(connection_);
  const auto rows = tx.exec_prepared(prepared("finish", [] { return sql::over("finish", sql::kLive); }),
                                     shards_of(claimed), array_of(claimed), tokens.literal(), repeated(n, kDone),
                                     repeated(n, 0), messages.literal(), kNode);
  require(rows.size(), n, "finish");
}

void RawSql::cancel(std::span<const JobId> ids) {
  pqxx::nontransaction tx(connection_);
  const auto& name = prepared("cancel", [] { return sql::cancel(sql::LockPolicy::together); });
  require(tx.exec_prepared(name, shards_of(ids), array_of(ids)).size(), ids.size(), "cancel");
}

}  // namespace tocsin::bench
