#include "metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace tocsin {
namespace {

struct CounterText {
  Counter what;
  const char* name;
  const char* help;
};

constexpr CounterText kTexts[kCounters] = {
    {Counter::candidates, "tocsin_candidates_total", "Scanned rows taken into memory"},
    {Counter::refused, "tocsin_refused_total", "Scanned rows or hints that were refused because memory was full"},
    {Counter::claims_won, "tocsin_claims_won_total", "Jobs claimed by this node"},
    {Counter::claims_lost, "tocsin_claims_lost_total",
     "Candidates that were claimed, cancelled or moved before this node claimed them"},
    {Counter::claims_in_doubt, "tocsin_claims_in_doubt_total", "Claim statements whose answer was lost"},
    {Counter::backlog_claims, "tocsin_backlog_claims_total", "Jobs claimed straight from the table"},
    {Counter::finished_done, "tocsin_finished_done_total", "Jobs that ended as done"},
    {Counter::finished_retry, "tocsin_finished_retry_total", "Attempts that ended in a retry"},
    {Counter::finished_dead, "tocsin_finished_dead_total", "Jobs that ended as dead"},
    {Counter::released, "tocsin_given_back_total", "Claimed jobs released before they started"},
    {Counter::set_aside, "tocsin_set_aside_total",
     "Outcomes that the database refused for their own values, written again apart from the others"},
    {Counter::stale_finishes, "tocsin_stale_finishes_total", "Results of lost claims, which changed nothing"},
    {Counter::expired_starts, "tocsin_expired_starts_total",
     "Claimed jobs not started because their lease or the time allowed for the start was over"},
    {Counter::audit_found, "tocsin_audit_found_total",
     "Overdue jobs that lay before the xmin watermark, where only the audit looks; must stay zero"},
    {Counter::marked_dead, "tocsin_buried_total", "Jobs made dead because the lease of their last attempt ended"},
    {Counter::dropped_late, "tocsin_dropped_late_total", "Jobs made dead because they were too late to run"},
    {Counter::store_errors, "tocsin_store_errors_total", "Failed database calls of the engine"},
};

const prometheus::Histogram::BucketBoundaries kSeconds = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                                          0.25,   0.5,   1,     2.5,   5,    10,   60,   600};

double seconds(Duration length) { return std::chrono::duration<double>(length).count(); }

}  // namespace

Metrics::Metrics(const Clock& clock)
    : clock_(clock), registry_(std::make_shared<prometheus::Registry>()), catalog_(std::make_shared<TypeCatalog>()) {
  const auto counters = [&](const char* name, const char* help) {
    return &prometheus::BuildCounter().Name(name).Help(help).Register(*registry_);
  };
  const auto histograms = [&](const char* name, const char* help) {
    return &prometheus::BuildHistogram().Name(name).Help(help).Register(*registry_);
  };
  for (const CounterText& text : kTexts)
    counters_[static_cast<std::size_t>(text.what)] = &counters(text.name, text.help)->Add({});
  lateness_family_ = histograms("tocsin_lateness_seconds", "First start of a job after it was due");
  missed_family_ = counters("tocsin_slo_missed_total", "First starts of jobs later than the target of their type");
  step_family_ = histograms("tocsin_step_seconds", "Duration of the steps of a stage, database call included");
  error_family_ = counters("tocsin_stage_errors_total", "Failed database calls by stage and kind");
  attempt_family_ =
      histograms("tocsin_attempt_seconds", "Duration of attempts by handlers of this node, by type and outcome");
  outcome_family_ = counters("tocsin_outcomes_total", "Attempts that ended, by type and outcome: done, dead or retry");
  request_family_ = counters("tocsin_http_requests_total", "Answers over HTTP by route and status code");
  pool_wait_ =
      &histograms("tocsin_pool_wait_seconds", "How long requests waited for a database thread")->Add({}, kSeconds);
  lock_pool_wait_ =
      &histograms("tocsin_lock_pool_wait_seconds", "How long work waited for a thread that may wait for locks")
           ->Add({}, kSeconds);
}

Metrics::~Metrics() = default;

void Metrics::count(Counter what, std::int64_t n) {
  if (n > 0) counters_[static_cast<std::size_t>(what)]->Increment(static_cast<double>(n));
}

prometheus::Histogram& Metrics::note_start(TypeId type, Duration lateness) {
  MutexLock lock(mutex_);
  Starts& starts = starts_[type];
  if (!starts.lateness) starts.lateness = &lateness_family_->Add({{"biz_type", label_of(type)}}, kSeconds);
  if (const BizType* known = catalog_->find(type); known && known->slo) {
    if (!starts.missed) starts.missed = &missed_family_->Add({{"biz_type", label_of(type)}});
    if (lateness > known->slo->lateness) starts.missed->Increment();
  }
  return *starts.lateness;
}

void Metrics::started(TypeId type, Duration lateness) {
  // A job that was run by hand may start before its deadline: it is not late, and a histogram has no negative values.
  lateness = std::max(lateness, Duration(0));
  note_start(type, lateness).Observe(seconds(lateness));
  window_.record(lateness, clock_.now());
}

Metrics::Ends Metrics::ends_of(TypeId type, Ending ending, bool is_timed) {
  MutexLock lock(mutex_);
  Ends& ends = ends_[{type, ending}];
  const char* const outcome = ending == Ending::done ? "done" : ending == Ending::dead ? "dead" : "retry";
  if (!ends.n) ends.n = &outcome_family_->Add({{"biz_type", label_of(type)}, {"outcome", outcome}});
  if (is_timed && !ends.took)
    ends.took = &attempt_family_->Add({{"biz_type", label_of(type)}, {"outcome", outcome}}, kSeconds);
  return ends;
}

void Metrics::ended(TypeId type, Ending ending, Duration took) {
  const Ends ends = ends_of(type, ending, true);
  ends.n->Increment();
  ends.took->Observe(seconds(took));
}

void Metrics::ended_elsewhere(TypeId type, Ending ending, std::int64_t n) {
  if (n > 0) ends_of(type, ending, false).n->Increment(static_cast<double>(n));
}

void Metrics::answered(const std::string& route, int status) {
  prometheus::Counter* counter = nullptr;
  {
    MutexLock lock(mutex_);
    auto it = requests_.find({route, status});
    if (it == requests_.end()) {
      prometheus::Counter& made =
          request_family_->Add({{"route", route.empty() ? "none" : route}, {"code", std::to_string(status)}});
      it = requests_.emplace(std::pair(route, status), &made).first;
    }
    counter = it->second;
  }
  counter->Increment();
}

void Metrics::waited(Duration time) { pool_wait_->Observe(seconds(time)); }

void Metrics::waited_behind_locks(Duration time) { lock_pool_wait_->Observe(seconds(time)); }

std::string Metrics::label_of(TypeId type) {
  const BizType* known = catalog_->find(type);
  return labels_.of(known ? known->name : std::to_string(type));
}

void Metrics::stepped(std::string_view stage, Duration took) {
  prometheus::Histogram* histogram = nullptr;
  {
    MutexLock lock(mutex_);
    auto it = by_stage_.find(stage);
    if (it == by_stage_.end())
      it = by_stage_.emplace(stage, &step_family_->Add({{"stage", std::string(stage)}}, kSeconds)).first;
    histogram = it->second;
  }
  histogram->Observe(seconds(took));
}

void Metrics::failed(std::string_view stage, const Error& error) {
  count(Counter::store_errors, 1);
  error_family_->Add({{"stage", std::string(stage)}, {"code", to_string(error.code)}}).Increment();
  std::optional<std::string> line;
  {
    MutexLock lock(mutex_);
    line = failure_log_.line(stage, error, clock_.now());
  }
  if (line) spdlog::warn("{}", *line);
}

void Metrics::set_catalog(std::shared_ptr<const TypeCatalog> catalog) {
  MutexLock lock(mutex_);
  catalog_ = std::move(catalog);
}

void Metrics::add_gauge(const std::string& name, const std::string& help, std::function<double()> read,
                        const Labels& labels) {
  auto& gauge = prometheus::BuildGauge().Name(name).Help(help).Register(*registry_).Add(labels);
  MutexLock lock(mutex_);
  gauges_.emplace_back(&gauge, std::move(read));
}

void Metrics::add_gauges(const std::string& name, const std::string& help,
                         std::function<std::vector<LabelledValue>()> read) {
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(*registry_);
  MutexLock lock(mutex_);
  gauge_families_.push_back({&family, std::move(read), {}});
}

void Metrics::add_counter(const std::string& name, const std::string& help, std::function<double()> read) {
  auto& counter = prometheus::BuildCounter().Name(name).Help(help).Register(*registry_).Add({});
  MutexLock lock(mutex_);
  read_counters_.emplace_back(&counter, std::move(read));
}

LatencySummary Metrics::lateness() const { return window_.summary(clock_.now()); }

std::string Metrics::text() const {
  {
    MutexLock lock(mutex_);
    for (const auto& [gauge, read] : gauges_) gauge->Set(read());
    for (const GaugeFamily& family : gauge_families_) {
      auto before = std::exchange(family.gauges, {});
      for (const auto& [labels, value] : family.read()) {
        prometheus::Gauge& gauge = family.family->Add(labels);
        gauge.Set(value);
        family.gauges.emplace(labels, &gauge);
        before.erase(labels);
      }
      for (const auto& [labels, gauge] : before) family.family->Remove(gauge);
    }
    for (const auto& [counter, read] : read_counters_) counter->Increment(std::max(0.0, read() - counter->Value()));
  }
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace tocsin
