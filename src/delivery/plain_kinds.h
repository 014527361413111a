// NoopKind, PullKind: the handler kinds without settings. The claimers do the work of both: a `noop` job ends done as
// soon as it is claimed, and a `pull` job is leased to a consumer that asks. Their handlers have two purposes. They
// show that this node can run such types. And they serve jobs that were claimed before their type changed to this kind:
// `noop` ends these done, `pull` as not started (the job is pending again, and the attempt is not counted).
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
