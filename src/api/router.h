// The table of all routes: handler, required role, and the text of the published API description.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/auth.h"
#include "api/http.h"
#include "api/json.h"
#include "api/problem.h"
#include "audit/audit.h"

namespace tocsin {

// One admitted request until it is answered. The code that works on it shares the pointer and hands it from thread to
// thread. Thread: any, one at a time.
struct Call {
  HttpRequest request;
  std::vector<std::string> arguments;        // the {parts} of the path, in order, decoded
  std::map<std::string, std::string> query;  // decoded; the router refuses parameters that the route does not have
  Responder respond;
  bool may_manage = false;  // of routes with Access::read: the caller may see values that only admins may see
  bool may_read = true;     // of routes with Access::open: whether routes with Access::read would admit the caller
  Caller caller = {};
  // The entry of this call in the audit log. The router sets caller, action and target; the handler adds the rest.
  AuditEntry audit = {};

  void reply(int status, std::string json) const;
  void refuse(const Problem& problem) const;
  std::optional<std::string> parameter(const std::string& name) const;  // of the query
};
using CallPtr = std::shared_ptr<Call>;

struct Parameter {
  std::string name;
  std::string schema;  // JSON text
  std::string description;
};

struct Reply {
  int status = 200;
  std::string schema;  // a name of openapi_schemas(); empty: no JSON
};

struct Route {
  std::string method;
  std::string path;  // "/v1/jobs/{job_id}"
  Access access = Access::manage;
  Audit audit = Audit::none;
  std::string operation_id;
  std::string tag;
  std::string summary;
  std::vector<Parameter> query = {};
  std::string request = {};  // name of the schema of its body; empty: no body, or an empty object
  bool is_body_optional = false;
  std::size_t body_limit = 16384;  // bytes
  std::vector<Reply> replies = {};
  std::vector<int> errors = {};                                 // statuses beside those that every route may answer
  std::optional<std::chrono::milliseconds> reply_timeout = {};  // instead of HttpLimits::reply_time, for long polls
  std::function<void(const CallPtr&)> handler = {};             // must not block; an exception is answered 500
};

// Finds the route of a request, checks the caller, and runs the handler.
// Thread: const after construction; admit any.
class Router : public HttpApp {
 public:
  // Called before a successful call of an audited route is answered, unless AuditEntry::is_left_out.
  using OnAudit = std::function<void(AuditEntry)>;
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

// Runs `work`; an exception is answered 500. The router runs handlers in it; work that a handler posts to another
// thread needs its own.
template <class Work>
void guarded(const CallPtr& call, Work work) {
  try {
    work();
  } catch (const std::exception&) {
    call->refuse({500, "Internal error."});
  }
}

}  // namespace tocsin
