#include "postgres/pg_maintenance.h"

#include <algorithm>

#include "postgres/sql_text.h"
#include "postgres/text.h"

namespace tocsin {
namespace {

constexpr int kReasonsADay = 200;  // reasons of dead jobs per type; later ones count as "other"
// In ms, for the lock of the tables of cancelled jobs, which callers may hold for long: housekeeping has more to do.
constexpr const char* kCancelledWait = "300";

}  // namespace

Result<std::vector<TypeState>> PgMaintenance::type_states() {
  return session_.read<std::vector<TypeState>>([&](pqxx::nontransaction& tx) {
    std::vector<TypeState> states;
    for (const auto& row : exec(tx, session_.prepared("type_states"))) {
      TypeState state;
      state.name = row[0].c_str();
      const auto jobs = numbers_from_array<std::int64_t>(row[1].c_str());
      std::copy_n(jobs.begin(), std::min(jobs.size(), state.jobs.size()), state.jobs.begin());
      state.oldest_due_s = row[2].as<double>();
      states.push_back(std::move(state));
    }
    return states;
  });
}

Result<bool> PgMaintenance::run_briefly(const char* statement) {
  return session_.transact<bool>([&](pqxx::work& tx) {
    tx.exec0(sql::set_local("statement_timeout", std::to_string(brief_.count())));
    return tx.exec1(statement)[0].as<bool>();
  });
}

Result<bool> PgMaintenance::count_horizon() {
  auto counted = run_briefly("SELECT tocsin.count_horizon()");
  if (counted || counted.error().field != kTooSlow) return counted;
  return session_.write<bool>([](pqxx::nontransaction& tx) {
    tx.exec("SELECT tocsin.shrink_horizon()");
    return true;
  });
}

Result<bool> PgMaintenance::keep_zone_days() {
  auto kept = run_briefly("SELECT tocsin.keep_zone_days()");
  // If it takes too long, reports add these days up when they are read.
  if (!kept && kept.error().field == kTooSlow) return false;
  return kept;
}

Status PgMaintenance::forget_old_reports() {
  return session_.write([&](pqxx::nontransaction& tx) {
    const auto end = tx.exec(sql::statement("reports_end"));
    if (end.empty()) return;
    for (const char* const rows :
         {"report_slot WHERE slot", "report_zone_start WHERE slot", "report_zone_day WHERE slot",
          "report_histogram WHERE slot", "report_duration_hour WHERE slot", "report_death WHERE slot",
          "report_created_day WHERE day", "report_delay_day WHERE day", "audit_log WHERE at", "bulk WHERE finished_at",
          "bulk_progress WHERE written_at", "report_flush WHERE flushed_at"})
      tx.exec_params0(sql::statement("forget_old_reports", {{"rows", rows}}), end[0][0].c_str());
  });
}

Result<bool> PgMaintenance::flush_histograms(NodeId node, std::int64_t seq, std::span<const ReportHistogram> all) {
  PgArray kinds, slots, types, ns, missed, max_ms, buckets;
  for (const ReportHistogram& each : all) {
    kinds.add(static_cast<std::int64_t>(each.kind));
    slots.add(each.slot);
    types.add(each.type_id);
    ns.add(each.n);
    missed.add(each.missed);
    max_ms.add_text(pqxx::to_string(static_cast<double>(each.max.count()) / 1000));
    PgArray counts;
    for (const auto& [bucket, n] : each.buckets) counts.add((static_cast<std::int64_t>(bucket) << 44) + n);
    buckets.add_text(counts.literal());
  }
  return session_.write<bool>([&](pqxx::nontransaction& tx) {
    const auto row = exec1(tx, session_.prepared("flush_histograms"), node, seq, kinds.literal(), slots.literal(),
                           types.literal(), ns.literal(), missed.literal(), max_ms.literal(), buckets.literal());
    return row[0].as<int>() > 0;
  });
}

Status PgMaintenance::forget_dead_nodes() {
  return session_.write([&](pqxx::nontransaction& tx) {
    tx.exec0(sql::statement("forget_dead_nodes"));
    // No node renews permits of removed types, so no renewal deletes them.
    tx.exec0("DELETE FROM tocsin.permit WHERE renewed_at + ttl + lease < clock_timestamp() - interval '1 hour'");
  });
}

Status PgMaintenance::forget_removed_types() {
  return session_.write([&](pqxx::nontransaction& tx) { tx.exec0(sql::statement("forget_removed_types")); });
}

Result<int> PgMaintenance::fold_counts() {
  return session_.write<int>(
      [&](pqxx::nontransaction& tx) { return exec1(tx, session_.prepared("fold_counts"), kReasonsADay)[0].as<int>(); });
}

Status PgMaintenance::ping() {
  return session_.read([](pqxx::nontransaction& tx) { tx.exec("SELECT 1"); });
}

Result<bool> PgMaintenance::prepare_history() {
  const auto make = [](pqxx::transaction_base& tx, const char* kind) {
    tx.exec_params1(sql::statement("prepare_history"), kind);
  };
  // First what outcomes need. Each statement commits by itself.
  const Status of_outcomes = session_.write([&](pqxx::nontransaction& tx) {
    for (const char* const kind : {"done", "dead"}) make(tx, kind);
  });
  if (!of_outcomes) return of_outcomes.error();
  const Status of_cancels = session_.transact([&](pqxx::work& tx) {
    tx.exec0(sql::set_local("lock_timeout", kCancelledWait));
    make(tx, "cancelled");
  });
  if (of_cancels) return true;
  if (of_cancels.error().field == kLocked) return false;
  return of_cancels.error();
}

Result<bool> PgMaintenance::has_history_today() {
  return session_.read<bool>(
      [&](pqxx::nontransaction& tx) { return exec1(tx, session_.prepared("has_history_today"))[0].as<bool>(); });
}

Status PgMaintenance::raise_ids() {
  return session_.write([&](pqxx::nontransaction& tx) { tx.exec("SELECT tocsin.raise_ids()"); });
}

Result<PgMaintenance::OldDays> PgMaintenance::old_history(const std::map<std::string, int>& days) {
  return session_.read<OldDays>([&](pqxx::nontransaction& tx) {
    const auto day_of = [](const pqxx::field& field) {
      return std::chrono::sys_days(std::chrono::days(field.as<int>()));
    };
    OldDays found;
    found.today = day_of(tx.exec1("SELECT (statement_timestamp() AT TIME ZONE 'UTC')::date - date '1970-01-01'")[0]);
    for (const auto& [status, keep] : days) {
      const auto rows = tx.exec_params(sql::statement("old_history"), status, keep);
      for (const auto& row : rows) {
        const PastDay past{day_of(row[3]), keep, row[4].as<bool>(), row[5].as<int>()};
        found.days.push_back({status, row[0].c_str(), row[1].as<bool>(), row[2].as<bool>(), past});
      }
    }
    return found;
  });
}

Result<bool> PgMaintenance::drop_history(const OldDay& day) {
  return session_.write<bool>([&](pqxx::nontransaction& tx) {
    try {
      // Detached first, without the lock that would stop every finish; then no statement reads the table any more.
      if (day.is_attached) {
        const char* const how = day.is_half_detached ? "FINALIZE" : "CONCURRENTLY";
        tx.exec0(sql::statement("detach_history", {{"status", day.status}, {"table", day.table}, {"how", how}}));
      }
      tx.exec0(sql::statement("drop_history", {{"table", day.table}}));
    } catch (const pqxx::sql_error& error) {
      // The table was dropped or detached meanwhile, or another node detaches it now.
      if (error.sqlstate() != "42P01" && error.sqlstate() != "55000") throw;
      return false;
    }
    return true;
  });
}

}  // namespace tocsin
