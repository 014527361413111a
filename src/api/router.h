// Route: an entry of the table of all routes (handler, access, text of the API description). Router: finds the route of
// each request; owned by Api (api.h). Call: an admitted request until it is answered.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/auth.h"
#include "api/http.h"
#include "api/json.h"
#include "api/problem.h"
#include "audit/audit.h"

namespace tocsin {

// One admitted request. The code that works on it shares the pointer and passes it from thread to thread; if the last
// pointer is dropped without an answer, the caller gets a 500. Thread: any, one at a time.
struct Call {
  HttpRequest request;
  std::vector<std::string> arguments;        // values of the {parts} of the path, in order, decoded
  std::map<std::string, std::string> query;  // decoded; the router refuses parameters that the route does not have
  Responder respond;
  // For routes with Access::read: the answer may show values that only admins may see.
  bool may_manage = false;
  // For routes with Access::open: the caller could also use a route with Access::read.
  bool may_read = true;
  Caller caller = {};
  // The entry of this call in the audit log. The router sets kind, caller and action, and `target` to the first
  // argument unless the handler set it. The handler sets the other members before it answers.
  AuditEntry audit = {};

  // Both answer the call; after the first answer they do nothing.
  void reply(int status, std::string json) const;
  void refuse(const Problem& problem) const;
  std::optional<std::string> parameter(const std::string& name) const;  // of the query; nullopt: not given
};
using CallPtr = std::shared_ptr<Call>;

struct Parameter {  // of the query
  std::string name;
  std::string schema;  // of its value, as JSON text
  std::string description;
};

struct Reply {
  int status = 200;
  std::string schema;  // name of the body's schema in openapi_schemas(); empty: no JSON
};

// Only for the API description: tag, summary, replies, errors, and the schemas and descriptions in `query`.
struct Route {
  std::string method;  // "GET" serves HEAD, too
  std::string path;    // "/v1/jobs/{job_id}"
  Access access = Access::manage;
  Audit audit = Audit::none;
  std::string operation_id;  // also the action in the audit log
  std::string tag;
  std::string summary;
  std::vector<Parameter> query = {};  // the router refuses all other parameters
  std::string request = {};           // name of its body's schema; empty: no body, or an empty object
  bool is_body_optional = false;
  bool takes_if_match = false;     // false: the router refuses the header If-Match, except for GET
  std::size_t body_limit = 16384;  // bytes; if `request` is empty, 1 KiB
  std::vector<Reply> replies = {};
  std::vector<int> errors = {};                                 // statuses beside 400, 401, 403, 413 and 415
  std::optional<std::chrono::milliseconds> reply_timeout = {};  // instead of HttpLimits::reply_time, for long polls
  // Called on a network thread, so it must not block. An exception is answered 500.
  std::function<void(const CallPtr&)> handler = {};
};

// Finds the route of a request, checks caller, query and body type, and runs the handler, which checks the values.
// Refusals:
// - 400: a malformed path or query, an unknown or repeated query parameter, an If-Match or If-None-Match that the route
//   does not support, or a body where none belongs.
// - 401, 403: the caller may not use the route (Gate, auth.h).
// - 404, 405: no such path, no such method.
// - 415: the Content-Type is not JSON.
//
// Thread: const after construction; admit() any.
class Router : public HttpApp {
 public:
  // Called with the audit entry before an audited route (Route::audit) answers, on the thread that answers: if the
  // status is below 300 or jobs were changed (AuditEntry::changed), unless the handler has set is_left_out.
  using OnAudit = std::function<void(AuditEntry)>;
  // REQUIRES: in `routes` a fixed path ("/v1/jobs/cancel") stands before a pattern that matches it
  // ("/v1/jobs/{job_id}").
  Router(std::vector<Route> routes, Gate gate, OnAudit on_audit = {});
  Admission admit(const HttpRequest& head) override;
  void answered(const std::string& route, int status) override {
    if (on_answer) on_answer(route, status);
  }
  std::function<void(const std::string& route, int status)> on_answer;  // set before the first request
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::optional<std::vector<std::string>> match(std::size_t route, const std::vector<std::string>& path) const;

  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> templates_;  // by route: the segments of its path
  Gate gate_;
  OnAudit on_audit_;
};

// `work` for a queue. It does nothing if the caller has gone when its turn comes: after a database was silent, its
// queue is full of requests that were answered 503.
template <class Access>
std::function<void(Access&)> unless_gone(const CallPtr& call, std::function<void(Access&)> work) {
  return [call, work = std::move(work)](Access& access) {
    if (!call->respond.is_gone()) work(access);
  };
}

// Runs `work`; an exception is answered 500. The router runs handlers inside guarded(). A handler that posts work to
// another thread without ApiContext or fan_out.h must call guarded() there, because an exception would end the process.
template <class Work>
void guarded(const CallPtr& call, Work work) {
  try {
    work();
  } catch (const std::exception&) {
    call->refuse({500, "Internal error."});
  }
}

}  // namespace tocsin
