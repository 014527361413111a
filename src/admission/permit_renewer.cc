#include "admission/permit_renewer.h"

#include <algorithm>

#include "core/fair_share.h"

namespace tocsin {
namespace {

// How long a node keeps a permit that the nodes take in turns, because there are fewer permits than nodes.
constexpr Duration kTurn = std::chrono::seconds(2);

}  // namespace

void PermitRenewer::set_catalog(std::shared_ptr<const TypeCatalog> catalog) {
  catalog_.set(std::move(catalog));
  if (self_) self_->wake();
}

void PermitRenewer::drain() {
  is_draining_ = true;
  if (self_) self_->wake();
}

PermitRequest PermitRenewer::request_for(const BizType& type, Limit limit, MonoTime now) {
  PermitRequest request{type.type_id, limit};
  if (is_draining_) flow_.grant(type.type_id, limit, {}, now);
  request.held = flow_.held(type.type_id, limit);
  const Waiting waiting = waiting_(type.type_id);
  const int total = permits_of(type, limit);
  if (limit == Limit::running) {
    const std::size_t used = flow_.used(type.type_id);
    request.used = static_cast<int>(used);
    request.need = static_cast<int>(std::min(used + waiting.fresh + waiting.late, static_cast<std::size_t>(total)));
    request.lease = lease_of(type, now);
  } else {
    // A small share for every node, so that a first job need not wait for its part of the rate.
    const int idle = kWholeRate / static_cast<int>(4 * nodes_);
    const bool is_waited_for = limit == Limit::catch_up ? waiting.late > 0 : waiting.fresh + waiting.late > 0;
    request.used = flow_.measure_rate_use(type, limit, now);
    request.need = is_waited_for ? kWholeRate : std::min(kWholeRate, std::max(idle, request.used * 5 / 4));
  }
  const auto target = targets_.find({type.type_id, limit});
  request.wanted = target == targets_.end() ? std::max(request.need, 1) : target->second;
  if (is_draining_) {
    request.need = -1;
    request.wanted = 0;
  }
  if (const auto doubt = in_doubt_.find(type.type_id); limit == Limit::running && doubt != in_doubt_.end()) {
    // Returns nothing and asks for nothing, so the answer shows whether the takeover happened. After this renewal a
    // takeover in doubt cannot happen any more.
    request.held = doubt->second.granted + doubt->second.wanted;
    request.wanted = 0;
  }
  return request;
}

Duration PermitRenewer::lease_of(const BizType& type, MonoTime now) const {
  const LeaseTable& leases = flow_.leases();
  const MonoTime end = leases.last_end(type.type_id);
  const Duration length = std::max(type.ttr, flow_.wanted_lease(type.type_id, now));
  if (end <= now) return type.is_pull() ? length + config_.takeover_delay() : length;
  return std::max(length, end - now) + config_.takeover_delay();
}

std::vector<PermitRequest> PermitRenewer::requests(MonoTime now) {
  const auto catalog = catalog_.get();
  std::vector<PermitRequest> requests;
  for (const auto& type : catalog->types) {
    if (!type->is_limited()) continue;
    for (const Limit limit : {Limit::running, Limit::rate, Limit::catch_up})
      if (permits_of(*type, limit) > 0) requests.push_back(request_for(*type, limit, now));
  }
  return requests;
}

Status PermitRenewer::leave(MonoTime now) {
  is_draining_ = true;
  // No later renewal shows the result, so permits that may have been taken over count as taken over.
  for (const auto& [type, doubt] : in_doubt_) flow_.leases().take_over(type, static_cast<std::size_t>(doubt.wanted));
  in_doubt_.clear();
  PermitBeat beat{config_.node, ++number_, Duration(0), requests(now)};
  for (PermitRequest& request : beat.requests) {
    const std::size_t leased = request.limit == Limit::running ? flow_.leases().count(request.type_id) : 0;
    request.held = static_cast<int>(leased);
    // The time that the leases have left; the store keeps an earlier, longer one.
    if (leased > 0)
      request.lease = std::max(Duration(0), flow_.leases().last_end(request.type_id) - now) + config_.takeover_delay();
  }
  if (beat.requests.empty()) return Unit{};
  const auto reply = store_.renew(beat);
  return reply ? Status(Unit{}) : Status(reply.error());
}

MonoTime PermitRenewer::take_over(MonoTime now) {
  Takeover takeover = takeovers_.back();
  takeovers_.pop_back();
  takeover.wanted = static_cast<int>(flow_.leases().foreign_leases(takeover.type));
  const auto n = store_.take_over(config_.node, number_, takeover.type, takeover.wanted);
  if (!n) {
    // If it did not happen, the next reply shows again that there are permits to take over.
    events_.failed(name(), n.error());
    if (n.error().code == ErrorCode::in_doubt) in_doubt_[takeover.type] = takeover;
    return now + config_.retry_pause;
  }
  flow_.leases().take_over(takeover.type, static_cast<std::size_t>(*n));
  return now;
}

void PermitRenewer::settle_doubt(TypeId type, int granted) {
  const auto doubt = in_doubt_.find(type);
  if (doubt == in_doubt_.end()) return;
  // Before grant(): no job may start under a permit that belongs to a lease. Permits of leases that ended meanwhile are
  // this node's like any other.
  if (const int n = granted - doubt->second.granted; n > 0) flow_.leases().take_over(type, static_cast<std::size_t>(n));
  in_doubt_.erase(doubt);
}

MonoTime PermitRenewer::step(MonoTime now) {
  if (!takeovers_.empty()) return take_over(now);
  PermitBeat beat{config_.node, 0, config_.ttl, requests(now)};
  if (beat.requests.empty()) return kWhenWoken;
  beat.number = ++number_;
  const auto reply = store_.renew(beat);
  if (!reply) {
    // An Error in_doubt is handled in the same way: the next request has a higher number and names what is held.
    events_.failed(name(), reply.error());
    return now + config_.retry_pause;
  }
  bool is_unsettled = false;
  got_fewer_than_needed_ = false;
  for (std::size_t i = 0; i < beat.requests.size(); ++i)
    is_unsettled = apply(beat.requests[i], reply->items[i], *reply) || is_unsettled;
  was_repeated_ = is_unsettled && !was_repeated_;
  if (was_repeated_ || !takeovers_.empty()) return now;
  return reply->answered +
         (got_fewer_than_needed_ ? std::min(config_.short_interval, config_.interval()) : config_.interval());
}

bool PermitRenewer::apply(const PermitRequest& request, const PermitReply::Item& item, const PermitReply& reply) {
  int left = item.total, free = item.total, granted = 0, in_use = 0;
  std::vector<int> needs;
  std::size_t self = 0;
  bool has_orphans = false;
  for (const PermitShare& share : item.shares) {
    free -= share.granted;
    in_use += share.used;
    if (share.node == config_.node) granted = share.granted;
    has_orphans = has_orphans || (share.is_expired && share.granted > 0 && share.node != config_.node);
    const bool is_sharing = !share.is_expired && share.need >= 0;
    if (!is_sharing && share.node != config_.node) {
      left -= share.granted;
      continue;
    }
    if (share.node == config_.node) self = needs.size();
    needs.push_back(std::max(share.need, 0));
  }
  if (request.limit == Limit::running) {
    settle_doubt(request.type_id, granted);
    if (has_orphans && flow_.leases().foreign_leases(request.type_id) > 0)
      takeovers_.push_back({request.type_id, granted});
  }
  nodes_ = std::max<std::size_t>(1, needs.size());
  const auto turn = static_cast<std::uint64_t>(reply.db_now.time_since_epoch() / kTurn);
  const int target = is_draining_ || needs.empty() ? 0 : fair_share(std::max(left, 0), needs, self, turn);
  targets_[{request.type_id, request.limit}] = target;
  const FlowControl::Grant grant{
      std::min(granted, target), reply.asked + config_.trust(), request.lease, item.total, in_use, granted};
  flow_.grant(request.type_id, request.limit, grant, reply.answered);
  if (granted < std::min(target, request.need)) got_fewer_than_needed_ = true;
  return flow_.held(request.type_id, request.limit) < granted || (granted < target && free > 0);
}

}  // namespace tocsin
