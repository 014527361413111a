#include "delivery/http_sender.h"

#include "base/assert.h"
#include "delivery/resolver.h"
#include "delivery/sender_loop.h"

namespace tocsin {

HttpSender::HttpSender(HttpSenderOptions options, const Clock& clock) : options_(std::move(options)) {
  TOCSIN_ASSERT(options_.threads > 0);
  const auto resolver = options_.resolver ? options_.resolver : std::make_shared<SystemResolver>();
  for (int i = 0; i < options_.threads; ++i) loops_.push_back(std::make_unique<SenderLoop>(options_, clock, resolver));
}

HttpSender::~HttpSender() { stop(); }

Status HttpSender::start() {
  for (const auto& loop : loops_) {
    if (auto done = loop->start(); !done) return done;
  }
  return Unit{};
}

void HttpSender::stop() {
  for (const auto& loop : loops_) loop->stop();
}

void HttpSender::send(OutboundRequest request, Done done) {
  const std::size_t at = std::hash<std::string>()(request.target.origin) % loops_.size();
  loops_[at]->send(std::move(request), std::move(done));
}

void HttpSender::call_at(MonoTime time, std::function<void()> call) { loops_.front()->call_at(time, std::move(call)); }

HttpSenderStats HttpSender::stats() const {
  HttpSenderStats stats;
  for (const auto& loop : loops_) loop->add_to(stats);
  return stats;
}

}  // namespace tocsin
