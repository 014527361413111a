#include "delivery/plain_kinds.h"

#include <nlohmann/json.hpp>

namespace tocsin {
namespace {

class NoopHandler final : public Handler {
 public:
  void start(const ClaimedJob&, Finish finish) override { finish(Outcome::done()); }
};

// Only for jobs that were claimed before their type became a pull type: claimers hand the others to consumers.
class PullHandler final : public Handler {
 public:
  void start(const ClaimedJob&, Finish finish) override { finish(Outcome::not_started(Duration(0))); }
};

}  // namespace

std::optional<Error> check_bare(const BizType& type) {
  const auto handler = nlohmann::json::parse(type.handler_json, nullptr, /*allow_exceptions=*/false);
  if (!handler.is_object()) return Error{ErrorCode::invalid, "must be an object", "handler"};
  for (const auto& [name, value] : handler.items()) {
    if (name != "kind") return Error{ErrorCode::invalid, "unknown field", "handler." + name};
  }
  return {};
}

std::shared_ptr<Handler> NoopKind::make(const BizType&) { return std::make_shared<NoopHandler>(); }
std::shared_ptr<Handler> PullKind::make(const BizType&) { return std::make_shared<PullHandler>(); }

}  // namespace tocsin
