#include "api/http.h"

#include <algorithm>
#include <iterator>

#include "api/problem.h"

namespace tocsin {
namespace {

constexpr std::pair<int, std::string_view> kReasonPhrases[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
};

}  // namespace

struct Responder::Pending {
  Pending(Send s, std::shared_ptr<const std::atomic<bool>> gone) : send(std::move(s)), is_gone(std::move(gone)) {}
  ~Pending() {
    if (!is_answered)
      send(problem_response({500, "The request was dropped before it was answered; its outcome is unknown."}));
  }
  Send send;
  std::shared_ptr<const std::atomic<bool>> is_gone;
  std::atomic<bool> is_answered = false;
};

Responder::Responder(Send send, std::shared_ptr<const std::atomic<bool>> is_gone)
    : pending_(std::make_shared<Pending>(std::move(send), std::move(is_gone))) {}

Responder Responder::with(Send send) const { return Responder(std::move(send), pending_->is_gone); }

bool Responder::is_gone() const { return pending_->is_gone && *pending_->is_gone; }

void Responder::operator()(HttpResponse response) const {
  if (!pending_->is_answered.exchange(true)) pending_->send(std::move(response));
}

ByteBudget::Reservation SharedBody::reserve(ByteBudget& budget) const {
  MutexLock lock(mutex_);
  ByteBudget::Reservation reservation = reservation_.lock();
  if (!reservation) reservation_ = reservation = budget.reserve(text_.size());
  return reservation;
}

void HttpResponse::share_body() {
  if (!shared_body) shared_body = std::make_shared<const SharedBody>(std::exchange(body, {}));
}

std::string_view reason_phrase(int status) {
  const auto known = std::ranges::find(kReasonPhrases, status, &std::pair<int, std::string_view>::first);
  return known == std::end(kReasonPhrases) ? "Unknown" : known->second;
}

}  // namespace tocsin
