#include "delivery/handler_registry.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace tocsin {

namespace {

// Replaces a handler whose settings have become wrong, for attempts that were claimed before.
class NoHandler final : public Handler {
 public:
  void start(const ClaimedJob&, Finish finish) override { finish(Outcome::not_started(std::chrono::seconds(1))); }
};

}  // namespace

// The handler of one type across changes of its settings.
class HandlerRegistry::TypeHandler final : public Handler {
 public:
  TypeHandler(const BizType& type, std::shared_ptr<Handler> current)
      : handler_json_(type.handler_json), ttr_(type.ttr), current_(std::move(current)) {}

  void start(const ClaimedJob& job, Finish finish) override {
    std::shared_ptr<Handler> current;
    {
      MutexLock lock(mutex_);
      current = current_;  // keeps it through the call if the settings change now
    }
    current->start(job, std::move(finish));
  }

  std::shared_ptr<const StartPool> pool() const override {
    MutexLock lock(mutex_);
    return current_->pool();
  }

  std::string hold_reason() const override {
    MutexLock lock(mutex_);
    return current_->hold_reason();
  }

  bool is_of(const BizType& type) const {
    MutexLock lock(mutex_);
    return handler_json_ == type.handler_json && ttr_ == type.ttr;
  }

  // `next` null: the type cannot run here.
  void set(const BizType& type, std::shared_ptr<Handler> next) {
    MutexLock lock(mutex_);
    handler_json_ = next ? type.handler_json : "";  // "": is_of() is false for every type
    ttr_ = type.ttr;
    if (!next) next = std::make_shared<NoHandler>();
    current_.swap(next);
  }

 private:
  mutable Mutex mutex_;
  std::string handler_json_ TOCSIN_GUARDED_BY(mutex_);
  Duration ttr_ TOCSIN_GUARDED_BY(mutex_);
  std::shared_ptr<Handler> current_ TOCSIN_GUARDED_BY(mutex_);
};

HandlerRegistry::HandlerRegistry() = default;
HandlerRegistry::~HandlerRegistry() = default;

void HandlerRegistry::add(std::unique_ptr<HandlerKind> kind) {
  const bool is_new = by_name_.emplace(kind->name(), kind.get()).second;
  TOCSIN_ASSERT(is_new);
  kinds_.push_back(std::move(kind));
}

Status HandlerRegistry::start() {
  for (const auto& kind : kinds_) {
    if (auto done = kind->start(); !done) return done;
  }
  return Unit{};
}

void HandlerRegistry::stop(Duration grace, const Clock& clock) {
  const MonoTime deadline = clock.now() + grace;
  for (const auto& kind : kinds_) kind->stop(std::max(deadline - clock.now(), Duration(0)));
}

std::vector<KindMetric> HandlerRegistry::metrics() {
  std::vector<KindMetric> all;
  for (const auto& kind : kinds_) {
    for (KindMetric& metric : kind->metrics()) all.push_back(std::move(metric));
  }
  return all;
}

std::vector<EndpointInfo> HandlerRegistry::endpoints() const {
  std::vector<EndpointInfo> all;
  for (const auto& kind : kinds_) {
    for (EndpointInfo& endpoint : kind->endpoints()) all.push_back(std::move(endpoint));
  }
  return all;
}

void HandlerRegistry::on_capacity_change(const std::function<void()>& changed) {
  for (const auto& kind : kinds_) kind->on_capacity_change(changed);
}

HandlerKind* HandlerRegistry::kind_of(const BizType& type) const {
  const auto kind = by_name_.find(type.handler_kind);
  return kind == by_name_.end() ? nullptr : kind->second;
}

std::optional<Error> HandlerRegistry::check(const BizType& type) const {
  if (const HandlerKind* kind = kind_of(type)) return kind->check(type);
  std::string known;
  for (const auto& [name, unused] : by_name_) known += (known.empty() ? "" : ", ") + name;
  return Error{ErrorCode::invalid, "must be one of " + known, "handler.kind"};
}

Handler* HandlerRegistry::find(const BizType& type) {
  MutexLock lock(mutex_);
  const auto known = by_type_.find(type.type_id);
  if (known != by_type_.end() && known->second->is_of(type)) return known->second.get();

  HandlerKind* const kind = kind_of(type);
  std::shared_ptr<Handler> made = kind ? kind->make(type) : nullptr;
  const bool can_run = made != nullptr;
  if (known != by_type_.end()) {
    known->second->set(type, std::move(made));
    return can_run ? known->second.get() : nullptr;
  }
  if (!can_run) return nullptr;
  auto handler = std::make_unique<TypeHandler>(type, std::move(made));
  return by_type_.emplace(type.type_id, std::move(handler)).first->second.get();
}

void HandlerRegistry::forget(const BizType& type) {
  MutexLock lock(mutex_);
  const auto known = by_type_.find(type.type_id);
  HandlerKind* const kind = kind_of(type);
  if (known != by_type_.end() && kind) known->second->set(type, kind->make(type));
}

}  // namespace tocsin
