// GET /v1/overview: the data of the dashboard's first screen and of `tocsin top`.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "api/fan_out.h"
#include "api/report_rows.h"
#include "api/resources.h"
#include "core/rfc3339.h"
#include "core/target.h"

namespace tocsin {
namespace {

using nlohmann::json;

constexpr int kDueCap = 200;        // per shard: counted exactly up to here
constexpr int kMostTypes = 10'000;  // whose state is read
constexpr std::size_t kWorst = 8;
constexpr double kLateMs = 60'000;         // of a type without a target
constexpr std::int64_t kManyDeaths = 10;   // in 15 minutes: fewer are no reason for alarm,
constexpr std::int64_t kOnlyDeaths = 3;    // unless nothing else happened
constexpr std::int64_t kManyRetries = 10;  // in 15 minutes: fewer are no reason for alarm

struct Facts {  // of one database
  std::vector<TypeCount> counts;
  std::int64_t due_next_minute = 0;
  bool is_capped = false;
  std::vector<std::string> recent, recent_of_all, backlog, next_hour;
};

Result<Facts> read_facts(Stores& stores, const std::vector<Shard>& shards, WallTime now) {
  Facts facts;
  auto counts = stores.reports.counts();
  if (!counts) return counts.error();
  facts.counts = std::move(*counts);
  const auto due = stores.reports.due_soon(shards, std::chrono::minutes(1), kDueCap, false);
  if (!due) return due.error();
  for (const std::int64_t n : *due) {
    facts.due_next_minute += n;
    facts.is_capped = facts.is_capped || n >= kDueCap;
  }
  ReportQuery query;
  query.limit = kMostTypes;
  for (auto [report, rows] : {std::pair(Report::recent, &facts.recent),
                              {Report::recent_of_all, &facts.recent_of_all},
                              {Report::backlog, &facts.backlog},
                              {Report::next, &facts.next_hour}}) {
    query.report = report;
    if (report == Report::next) {
      query.from = now - std::chrono::minutes(1);
      query.to = now + std::chrono::hours(1);
    }
    auto read = stores.reports.report(query);
    if (!read) return read.error();
    *rows = std::move(*read);
  }
  return facts;
}

// Why jobs of the type wait, and what an operator can do about it, as far as this node knows.
std::string remedy_of(const Backend& backend, const BizType& type, const json& waits_for, Duration age) {
  if (waits_for == "max_running") return "max_running is reached: raise it, or make its handler faster.";
  Job oldest;
  oldest.type_id = type.type_id;
  oldest.fire_at = backend.now() - age;
  if (const std::string hold = backend.hold_reason(oldest); !hold.empty()) return "Here it waits because " + hold + ".";
  if (waits_for == "catch_up") return "Jobs found late start at catch_up.rate_per_s: raise it, or let it catch up.";
  if (waits_for == "rate_per_s") return "rate_per_s is reached: raise it, or wait until it has caught up.";
  if (type.is_pull()) return "It waits for its consumers: start more of them, or let each lease more jobs at once.";
  return "More is due than its handler takes: see the duration report, add nodes, or look at the database's load.";
}

double number(const json& row, const char* name) {
  return row.contains(name) && row[name].is_number() ? row[name].get<double>() : 0;
}
std::int64_t whole(const json& row, const char* name) { return static_cast<std::int64_t>(number(row, name)); }

struct TypeState {
  std::string name;
  std::int64_t due = 0, started = 0, missed = 0, done = 0, dead = 0, dropped_late = 0, retried = 0;
  double oldest_age_ms = 0;
  json p99_ms, target_ms, target_share, waits_for;
  bool is_paused = false, is_due_exact = true;

  bool misses_target() const {
    return target_share.is_number() && !TargetUse{started, missed, target_share.get<double>()}.is_met();
  }
  bool is_behind() const {
    const double limit = target_ms.is_number() ? std::max(target_ms.get<double>(), 1000.0) : kLateMs;
    return !is_paused && due > 0 && oldest_age_ms > limit;
  }
  bool is_dying() const { return dead >= (done == 0 ? kOnlyDeaths : kManyDeaths) && dead >= done; }
  bool drops_late() const { return 2 * dropped_late > dead; }
  // Most attempts fail and are tried again. The jobs wait in back-off, so they are neither due nor dead. A paused type
  // is left out: the operator knows of it.
  bool is_failing() const { return !is_paused && retried >= kManyRetries && retried > done; }
  // Order of urgency: the highest comes first.
  double badness() const {
    return (misses_target() ? 1e12 : 0) + (is_dying() ? 5e11 : 0) + (is_failing() ? 3e11 : 0) +
           (is_behind() ? 1e11 : 0) + (is_paused ? 0 : oldest_age_ms) + static_cast<double>(dead) * 1000 +
           static_cast<double>(missed);
  }
};

// All parts together.
class Overview {
 public:
  Overview(const Backend& backend, std::vector<DatabaseAnswer<Facts>> answers)
      : backend_(backend), answers_(std::move(answers)), now_(backend.now()), ready_(backend.readiness()) {
    for (const auto& type : backend_.types()->types) {
      types_[type->name].name = type->name;
      types_[type->name].is_paused = type->is_paused(now_);
    }
    std::vector<std::vector<std::string>> recent, recent_of_all, backlog, next_hour;
    for (const auto& [database_id, facts] : answers_) {
      if (!facts) continue;
      for (const TypeCount& count : facts->counts) totals_[static_cast<std::size_t>(count.status)] += count.n;
      due_next_minute_ += facts->due_next_minute;
      is_capped_ = is_capped_ || facts->is_capped;
      recent.push_back(facts->recent);
      recent_of_all.push_back(facts->recent_of_all);
      backlog.push_back(facts->backlog);
      next_hour.push_back(facts->next_hour);
    }
    add_recent_of_all(recent_of_all);
    add_recent(recent);
    add_backlog(backlog);
    // The horizon is counted once a minute: it may lack jobs that were created since and are due within the next
    // minute.
    for (const json& row : items(Report::next, next_hour))
      if (row.at("n").is_number()) due_next_hour_ = std::max(row["n"].get<std::int64_t>(), due_next_minute_);
  }

  std::string text() const;

 private:
  static json items(Report report, const std::vector<std::vector<std::string>>& parts) {
    return json::parse(merged_report(report_shape_of(report), parts, kMostTypes * 10, {}, "") + "}").at("items");
  }
  void add_recent_of_all(const std::vector<std::vector<std::string>>& parts);
  void add_recent(const std::vector<std::vector<std::string>>& parts);
  void add_backlog(const std::vector<std::vector<std::string>>& parts);
  std::vector<json> reasons() const;
  std::string remedy(const TypeState& type) const;
  json worst() const;

  const Backend& backend_;
  const std::vector<DatabaseAnswer<Facts>> answers_;
  const WallTime now_;
  const Readiness ready_;
  std::map<std::string, TypeState> types_;
  std::array<std::int64_t, 5> totals_{};
  std::int64_t due_next_minute_ = 0, due_ = 0;
  json due_next_hour_;
  bool is_capped_ = false, is_due_exact_ = true;
  json lateness_ = {{"n", 0}, {"missed", 0}, {"p50", nullptr}, {"p99", nullptr}, {"max", nullptr}};
  json throughput_ = {{"created_per_s", 0.0}, {"done_per_s", 0.0}};
};

void Overview::add_recent_of_all(const std::vector<std::vector<std::string>>& parts) {
  for (const json& row : items(Report::recent_of_all, parts)) {
    lateness_ = {{"n", whole(row, "n")},
                 {"missed", whole(row, "missed")},
                 {"p50", row["p50_ms"]},
                 {"p99", row["p99_ms"]},
                 {"max", row["max_ms"]}};
    const double seconds = std::max(1.0, number(row, "seconds"));
    throughput_ = {{"created_per_s", number(row, "created") / seconds}, {"done_per_s", number(row, "done") / seconds}};
  }
}

void Overview::add_recent(const std::vector<std::vector<std::string>>& parts) {
  for (const json& row : items(Report::recent, parts)) {
    const auto name = row.at("biz_type").get<std::string>();
    TypeState& type = types_[name];
    type.name = name;
    type.started = whole(row, "n");
    type.missed = whole(row, "missed");
    type.done = whole(row, "done");
    type.dead = whole(row, "dead");
    type.dropped_late = whole(row, "dropped_late");
    type.retried = whole(row, "retried");
    type.p99_ms = row["p99_ms"];
    type.target_ms = row["target_ms"];
    type.target_share = row["target_share"];
  }
}

void Overview::add_backlog(const std::vector<std::vector<std::string>>& parts) {
  for (const json& row : items(Report::backlog, parts)) {
    TypeState& type = types_[row.at("biz_type").get<std::string>()];
    type.due = whole(row, "due");
    type.is_due_exact = row.value("is_exact", true);
    is_due_exact_ = is_due_exact_ && type.is_due_exact;
    type.oldest_age_ms = number(row, "oldest_age_ms");
    type.waits_for = row["waits_for"];
    due_ += type.due;
  }
}

std::vector<json> Overview::reasons() const {
  std::vector<json> found;
  const auto add = [&](const char* code, const std::string& text, const std::string& remedy) {
    found.push_back({{"code", code}, {"text", text}, {"remedy", remedy}});
  };
  for (const auto& [database_id, facts] : answers_)
    if (!facts)
      add("database_unavailable", "Database " + backend_.database_name(database_id) + " does not answer.",
          "Its jobs wait. Check the server and its connection; jobs start by themselves when it answers again.");
  if (!ready_.is_ready) add("not_ready", "This node cannot do its work.", "See /readyz for the check that fails.");
  for (const auto& [name, type] : types_) {
    if (type.misses_target())
      add("target_missed",
          name + " misses its target: " + std::to_string(type.missed) + " of " + std::to_string(type.started) +
              " jobs started late in the last 15 minutes.",
          "See what its jobs wait for; raise its limits or add nodes.");
    if (type.is_dying())
      add("dying",
          name + " is dying: of the last 15 minutes' " + std::to_string(type.dead + type.done) + " ends of its jobs, " +
              std::to_string(type.dead) + " were deaths.",
          type.drops_late() ? "Most of them were found later than drop_older_than_ms allows: see why, then retry them."
                            : "See the reasons under dead letters; repair its handler, then retry them.");
    else if (type.is_failing())
      add("failing",
          name + " is failing: " + std::to_string(type.retried) + " attempts of the last 15 minutes failed, " +
              std::to_string(type.done) + " jobs were done.",
          "See the errors of its jobs that have attempts; repair its handler, or pause it until then.");
    if (type.is_behind())
      add("behind",
          name + " is behind: its oldest due job has waited for " +
              std::to_string(static_cast<std::int64_t>(type.oldest_age_ms / 1000)) + " s.",
          remedy(type));
  }
  return found;
}

std::string Overview::remedy(const TypeState& type) const {
  const auto catalog = backend_.types();
  const BizType* const known = catalog->find(type.name);
  const Duration age(static_cast<std::int64_t>(type.oldest_age_ms * 1000));
  return known ? remedy_of(backend_, *known, type.waits_for, age) : "It was removed.";
}

json Overview::worst() const {
  std::vector<const TypeState*> order;
  for (const auto& [name, type] : types_) order.push_back(&type);
  std::ranges::stable_sort(order, std::greater(), &TypeState::badness);
  if (order.size() > kWorst) order.resize(kWorst);
  json list = json::array();
  for (const TypeState* type : order)
    list.push_back({{"biz_type", type->name},
                    {"due", type->due},
                    {"is_due_exact", type->is_due_exact},
                    {"oldest_age_ms", type->oldest_age_ms},
                    {"waits_for", type->waits_for},
                    {"started", type->started},
                    {"missed", type->missed},
                    {"dead", type->dead},
                    {"retried", type->retried},
                    {"p99_ms", type->p99_ms},
                    {"target_ms", type->target_ms},
                    {"target_share", type->target_share},
                    {"is_paused", type->is_paused}});
  return list;
}

std::string Overview::text() const {
  const auto why = reasons();
  const bool is_down = !ready_.is_ready || std::ranges::any_of(answers_, [](const auto& each) { return !each.result; });
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("at", rfc3339(now_)).field("node", backend_.node_name());
  out.field("verdict", is_down ? "down" : why.empty() ? "ok" : "late").key("reasons").raw(json(why).dump());
  out.key("totals").begin_object();
  for (std::size_t i = 0; i < totals_.size(); ++i) out.field(to_string(static_cast<JobStatus>(i)), totals_[i]);
  out.end_object().key("due").begin_object().field("now", due_).field("is_now_exact", is_due_exact_);
  out.field("next_minute", due_next_minute_);
  out.key("next_hour").raw(due_next_hour_.dump()).field("is_capped", is_capped_).end_object();
  out.key("lateness_ms").raw(lateness_.dump()).key("throughput").raw(throughput_.dump());
  out.key("worst").raw(worst().dump()).key("paused").begin_array();
  for (const auto& type : backend_.types()->types) {
    if (!type->is_paused(now_)) continue;
    const auto found = types_.find(type->name);  // absent: it was created while this was put together
    const TypeState state = found == types_.end() ? TypeState{} : found->second;
    out.begin_object()
        .field("biz_type", type->name)
        .field("until", type->paused_until ? std::optional(rfc3339(*type->paused_until)) : std::nullopt)
        .field("due", state.due)
        .field("is_exact", state.is_due_exact)
        .end_object();
  }
  out.end_array().key("warnings").begin_array();
  for (const std::string& warning : ready_.warnings)
    out.begin_object().field("text", warning).field("remedy", "docs/operations.md, section on warnings").end_object();
  out.end_array();
  write_missing(out, backend_, answers_);
  out.end_object();
  return text;
}

void overview(ApiContext& context, const CallPtr& call) {
  std::vector<Shard> shards(static_cast<std::size_t>(context.backend.shards()));
  std::iota(shards.begin(), shards.end(), Shard{0});
  fan_out<Facts>(
      context, call, context.backend.database_ids(),
      [&context, shards, now = context.backend.now()](DatabaseId database_id, Stores& stores) {
        std::vector<Shard> here;
        std::ranges::copy_if(shards, std::back_inserter(here),
                             [&](Shard shard) { return context.backend.database_of(shard) == database_id; });
        return read_facts(stores, here, now);
      },
      [&context, call](std::vector<DatabaseAnswer<Facts>> answers) {
        if (refused_by_all(context, call, answers)) return;
        call->reply(200, Overview(context.backend, std::move(answers)).text());
      },
      0, RequestQueue::slow_reads);
}

}  // namespace

std::vector<Route> overview_routes(ApiContext& context) {
  return {{.method = "GET",
           .path = "/v1/overview",
           .access = Access::read,
           .operation_id = "overview",
           .tag = "Reports",
           .summary = "What the first screen shows: a verdict, what is due, lateness against targets, the worst types",
           .replies = {{200, "Overview"}},
           .errors = {429, 503},
           .handler = [&context](const CallPtr& call) { overview(context, call); }}};
}

}  // namespace tocsin
