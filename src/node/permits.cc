#include "node/permits.h"

#include <cstdio>
#include <map>

namespace tocsin {
namespace {

SessionConfig unpinned(SessionConfig config) {
  config.has_pinned_plans = false;  // tiny tables
  return config;
}

std::string number(double n) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", n);
  return text;
}

const char* label_of(Limit limit) {
  return limit == Limit::running ? "max_running" : limit == Limit::rate ? "rate_per_s" : "catch_up";
}

}  // namespace

Permits::Permits(const PermitConfig& config, const SessionConfig& session, const Clock& clock, EventSink& events,
                 PermitRenewer::WaitingOf waiting, LoopThread::OnStep on_step)
    : config_(config),
      clock_(clock),
      events_(events),
      session_(unpinned(session)),
      store_(session_, clock),
      renewer_(config, *flow_, store_, events, std::move(waiting)),
      loop_(renewer_, clock, std::move(on_step)) {
  renewer_.set_waker(&loop_);
}

void Permits::set_catalog(std::shared_ptr<const TypeCatalog> catalog) {
  catalog_.set(catalog);
  renewer_.set_catalog(std::move(catalog));
}

void Permits::stop(bool is_clean) {
  if (std::exchange(is_stopped_, true)) return;
  loop_.stop();
  if (!is_clean) return;  // they expire with the jobs that were started under them
  const bool has_leases = !flow_->leases().is_empty();
  const Status done = has_leases ? renewer_.leave(clock_.now()) : store_.return_all(config_.node);
  if (!done) events_.failed("permits", done.error());
}

std::string Permits::hold_reason(const BizType& type, bool is_late) const {
  const MonoTime now = clock_.now();
  const std::size_t used = flow_->used(type.type_id);
  if (type.pool && flow_->in_pool(*type.pool) >= type.pool->capacity())
    return type.pool->name() + " runs " + std::to_string(type.pool->capacity()) +
           " jobs at once on this node, and that many are running";
  if (permits_of(type, Limit::running) > 0) {
    const auto grant = flow_->granted(type.type_id, Limit::running, now);
    const std::string most = " of max_running " + std::to_string(*type.max_running);
    if (!grant) return "this node has no permits" + most + " yet, or could not renew them";
    if (used >= static_cast<std::size_t>(std::max(grant->n, 0)))
      return std::to_string(std::max(grant->in_use, static_cast<int>(used))) + most + " run in the cluster, " +
             std::to_string(used) + " of them on this node, whose part is " + std::to_string(grant->n);
  }
  if (is_late && type.catch_up_rate_per_s)
    return "it was found late, and such jobs start at catch_up.rate_per_s " + number(*type.catch_up_rate_per_s) +
           ", the oldest first";
  if (flow_->is_paced(type, Pace::fresh, now))
    return "rate_per_s " + number(*type.rate_per_s) + " of its type is used up for now";
  return "";
}

std::optional<int> Permits::running(const BizType& type) const {
  if (permits_of(type, Limit::running) == 0) return {};
  const auto grant = flow_->granted(type.type_id, Limit::running, clock_.now());
  if (!grant) return {};
  return std::max(grant->in_use, static_cast<int>(flow_->used(type.type_id)));
}

std::vector<LabelledValue> Permits::values(std::function<double(const FlowControl::Grant&)> of) const {
  TypeLabels labels;
  std::map<std::pair<std::string, Limit>, double> sums;
  const auto catalog = catalog_.get();
  for (const auto& type : catalog->types) {
    if (!type->is_limited()) continue;
    const std::string name = labels.of(type->name);
    for (const Limit limit : {Limit::running, Limit::rate, Limit::catch_up}) {
      if (permits_of(*type, limit) == 0) continue;
      const auto grant = flow_->granted(type->type_id, limit, clock_.now());
      sums[{name, limit}] += of(grant.value_or(FlowControl::Grant{}));
    }
  }
  std::vector<LabelledValue> values;
  for (const auto& [key, n] : sums) values.push_back({{{"biz_type", key.first}, {"limit", label_of(key.second)}}, n});
  return values;
}

}  // namespace tocsin
