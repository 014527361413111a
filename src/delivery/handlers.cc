#include "delivery/handlers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "delivery/cpp_handler.h"
#include "delivery/webhook.h"
#include "delivery/webhook_settings.h"

namespace tocsin {
namespace {

// Types without settings: the kind alone.
std::optional<Error> check_bare(const BizType& type) {
  const auto handler = nlohmann::json::parse(type.handler_json, nullptr, /*allow_exceptions=*/false);
  if (!handler.is_object()) return Error{ErrorCode::invalid, "must be an object", "handler"};
  for (const auto& [name, value] : handler.items()) {
    if (name != "kind") return Error{ErrorCode::invalid, "unknown field", "handler." + name};
  }
  return {};
}

class NoopHandler final : public Handler {
 public:
  void start(const ClaimedJob&, Finish finish) override { finish(Outcome::done()); }
};

// Jobs of pull types are claimed for consumers and handed to them by the claimer. Here come only those that were
// claimed before their type became one.
class PullHandler final : public Handler {
 public:
  void start(const ClaimedJob&, Finish finish) override { finish(Outcome::not_started(Duration(0))); }
};

}  // namespace

// The handler of one type across changes of its settings.
class HandlerRegistry::TypeHandler final : public Handler {
 public:
  TypeHandler(std::string handler_json, std::shared_ptr<Handler> current)
      : handler_json_(std::move(handler_json)), current_(std::move(current)) {}

  void start(const ClaimedJob& job, Finish finish) override {
    std::shared_ptr<Handler> current;
    {
      std::lock_guard lock(mutex_);
      current = current_;  // keeps it through the call if the settings change now
    }
    current->start(job, std::move(finish));
  }

  std::size_t room() const override {
    std::lock_guard lock(mutex_);
    return current_->room();
  }

  bool has(const std::string& handler_json) const {
    std::lock_guard lock(mutex_);
    return handler_json_ == handler_json;
  }

  void set(const std::string& handler_json, std::shared_ptr<Handler> next) {
    std::lock_guard lock(mutex_);
    handler_json_ = handler_json;
    current_.swap(next);
  }

 private:
  mutable std::mutex mutex_;
  std::string handler_json_;
  std::shared_ptr<Handler> current_;
};

HandlerRegistry::HandlerRegistry(WebhookClient& webhooks, CppRunner& runner, const CppHandlers& functions) {
  kinds_["noop"] = {check_bare, [](const BizType&) { return std::make_shared<NoopHandler>(); }};
  kinds_["pull"] = {check_bare, [](const BizType&) { return std::make_shared<PullHandler>(); }};
  kinds_["webhook"] = {[](const BizType& type) { return check_webhook(type.handler_json, type.ttr); },
                       [&webhooks](const BizType& type) { return webhooks.handler_for(type); }};
  kinds_["cpp"] = {check_bare, [&runner, &functions](const BizType& type) {
                     auto function = functions.find(type.name);
                     return function ? runner.handler_for(std::move(function)) : nullptr;
                   }};
}

HandlerRegistry::~HandlerRegistry() = default;

std::optional<Error> HandlerRegistry::check(const BizType& type) const {
  const auto kind = kinds_.find(type.handler_kind);
  if (kind != kinds_.end()) return kind->second.check(type);
  std::string known;
  for (const auto& [name, unused] : kinds_) known += (known.empty() ? "" : ", ") + name;
  return Error{ErrorCode::invalid, "must be one of " + known, "handler.kind"};
}

Handler* HandlerRegistry::find(const BizType& type) {
  std::lock_guard lock(mutex_);
  const auto known = by_type_.find(type.type_id);
  if (known != by_type_.end() && known->second->has(type.handler_json)) return known->second.get();

  const auto kind = kinds_.find(type.handler_kind);
  std::shared_ptr<Handler> made = kind == kinds_.end() ? nullptr : kind->second.make(type);
  if (!made) return nullptr;
  if (known != by_type_.end()) {
    known->second->set(type.handler_json, std::move(made));
    return known->second.get();
  }
  auto handler = std::make_unique<TypeHandler>(type.handler_json, std::move(made));
  return by_type_.emplace(type.type_id, std::move(handler)).first->second.get();
}

}  // namespace tocsin
