// The handler kinds without settings. `noop` jobs are done at once: claimers fire them without a handler. `pull` jobs
// are claimed for consumers that ask: claimers hand them over without a handler. The handlers made here serve only jobs
// that were claimed before their type changed to this kind.
#pragma once

#include "delivery/handler_kind.h"

namespace tocsin {

class NoopKind final : public HandlerKind {
 public:
  std::string name() const override { return "noop"; }
  std::optional<Error> check(const BizType& type) const override { return check_bare(type); }
  std::shared_ptr<Handler> make(const BizType& type) override;
};

class PullKind final : public HandlerKind {
 public:
  std::string name() const override { return "pull"; }
  std::optional<Error> check(const BizType& type) const override { return check_bare(type); }
  std::shared_ptr<Handler> make(const BizType& type) override;
};

}  // namespace tocsin
