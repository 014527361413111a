// The handler kinds without settings. Jobs of `noop` types end done as soon as they are claimed, and jobs of `pull`
// types are leased to consumers that ask; the claimers do both without a handler. The handlers made here show that this
// node can run such types, and serve jobs that were claimed before their type changed to this kind: `noop` ends them
// done, `pull` as not started (pending again, the attempt is not counted).
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
