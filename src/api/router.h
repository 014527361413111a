// Route: an entry of the table of all routes (handler, access, text of the API description). Router: finds the route of
// each request. Call: an admitted request until it is answered.
#pragma once

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

// One admitted request until it is answered. The code that works on it shares the pointer and hands it from thread to
// thread; if the last pointer is dropped without an answer, the caller gets a 500. Thread: any, one at a time.
struct Call {
  HttpRequest request;
  std::vector<std::string> arguments;        // the {parts} of the path, in order, decoded
  std::map<std::string, std::string> query;  // decoded; the router refuses parameters that the route does not have
  Responder respond;
  bool may_manage = false;  // read by routes with Access::read: show the values that only admins may see
  bool may_read = true;     // read by routes with Access::open: a route with Access::read would admit the caller
  Caller caller = {};
  // The entry of this call in the audit log. The router sets kind, caller and action, and, if the handler did not, the
  // target: the first argument. The handler sets the rest before it answers.
  AuditEntry audit = {};

  // Both answer the call; after the first answer they do nothing.
  void reply(int status, std::string json) const;
  void refuse(const Problem& problem) const;
  std::optional<std::string> parameter(const std::string& name) const;  // of the query; nullopt: not given
};
using CallPtr = std::shared_ptr<Call>;

struct Parameter {  // of the query
  std::string name;
  std::string schema;  // JSON text
  std::string description;
};

struct Reply {
  int status = 200;
  std::string schema;  // a name of openapi_schemas(); empty: no JSON
};

// For the API description only: tag, summary, replies, errors, and the schemas and descriptions of `query`.
struct Route {
  std::string method;  // "GET" serves HEAD, too
  std::string path;    // "/v1/jobs/{job_id}"
  Access access = Access::manage;
  Audit audit = Audit::none;
  std::string operation_id;  // also the action in the audit log
  std::string tag;
  std::string summary;
  std::vector<Parameter> query = {};  // the router refuses all others
  std::string request = {};           // name of the schema of its body; empty: no body, or an empty object
  bool is_body_optional = false;
  bool takes_if_match = false;     // otherwise the router refuses the header on all methods but GET
  std::size_t body_limit = 16384;  // bytes; without `request` 1 KiB
  std::vector<Reply> replies = {};
  std::vector<int> errors = {};                                 // statuses beside 400, 401, 403, 413 and 415
  std::optional<std::chrono::milliseconds> reply_timeout = {};  // instead of HttpLimits::reply_time, for long polls
  // Called on a network thread, so it must not block. An exception is answered 500.
  std::function<void(const CallPtr&)> handler = {};
};

// Finds the route of a request, checks the caller, the names of the query's parameters (each once at most) and the type
// of the body, and runs the handler, which checks the values. Refuses with 400 (path, query, If-Match, or a body where
// none belongs), 401 and 403 (Gate), 404 (no such path), 405 (no such method) and 415 (Content-Type is not JSON).
// Thread: const after construction; admit any.
class Router : public HttpApp {
 public:
  // Called before an audited route answers with a status below 300, on the thread that answers, unless
  // AuditEntry::is_left_out.
  using OnAudit = std::function<void(AuditEntry)>;
  // REQUIRES: a fixed path ("/v1/jobs/cancel") stands before a pattern that it matches ("/v1/jobs/{job_id}").
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
  std::vector<std::vector<std::string>> templates_;  // the path of each route, in segments
  Gate gate_;
  OnAudit on_audit_;
};

// Runs `work`; an exception is answered 500. The router runs handlers in it; a handler that posts work to another
// thread without ApiContext or fan_out.h must call it there, because an exception would end the process.
template <class Work>
void guarded(const CallPtr& call, Work work) {
  try {
    work();
  } catch (const std::exception&) {
    call->refuse({500, "Internal error."});
  }
}

}  // namespace tocsin
