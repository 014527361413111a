#include "api/http.h"

#include "api/problem.h"

namespace tocsin {

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

bool Responder::is_gone() const { return pending_->is_gone && *pending_->is_gone; }

void Responder::operator()(HttpResponse response) const {
  if (!pending_->is_answered.exchange(true)) pending_->send(std::move(response));
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Unknown";
  }
}

}  // namespace tocsin
