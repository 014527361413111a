#include "api/router.h"

#include <algorithm>

#include "api/url.h"

namespace tocsin {
namespace {

constexpr std::size_t kNoBody = 1024;  // for routes without one: an empty object is harmless

bool is_json(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return type == "application/json";
}

Admission refused(const Problem& problem) {
  Admission admission;
  admission.refusal = problem_response(problem);
  return admission;
}

Admission not_allowed(std::vector<std::string> methods) {
  if (std::find(methods.begin(), methods.end(), "GET") != methods.end()) methods.emplace_back("HEAD");
  std::string allow;
  for (const std::string& method : methods) allow += (allow.empty() ? "" : ", ") + method;
  Admission admission = refused({405, "Allowed here: " + allow + "."});
  admission.refusal->headers.emplace_back("Allow", allow);
  return admission;
}

std::optional<Problem> check_body(const Route& route, const HttpRequest& request) {
  if (request.body.empty()) {
    if (route.request.empty() || route.is_body_optional) return {};
    return Problem{400, "The body is missing."};
  }
  if (!is_json(request.content_type)) return Problem{415, "The body must be JSON: Content-Type: application/json."};
  if (!route.request.empty()) return {};
  JsonDocument document(request.body);
  document.root().end();
  return document.problem();
}

// Passes the answer on, and records a success in the audit log first. A refusal is recorded if jobs were changed all
// the same: a batch may be created in one database and refused in another.
Responder audited(const CallPtr& call, const Route& route, const Router::OnAudit& on_audit, Responder respond) {
  const std::weak_ptr<Call> answered = call;
  return respond.with([answered, &route, on_audit, respond](HttpResponse response) {
    const auto made = answered.lock();
    if (made && !made->audit.is_left_out && (response.status < 300 || made->audit.changed.value_or(0) > 0)) {
      AuditEntry entry = std::move(made->audit);
      entry.kind = route.audit;
      entry.caller = made->caller;
      entry.action = route.operation_id;
      if (entry.target.empty() && !made->arguments.empty()) entry.target = made->arguments.front();
      on_audit(std::move(entry));
    }
    respond(std::move(response));
  });
}

struct Matched {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> query;
  bool may_manage = false;
  bool may_read = true;
  Caller caller;
};

Admission admitted(const Route& route, const HttpRequest& head, Matched matched, const Router::OnAudit& on_audit) {
  Admission admission;
  admission.route = route.path;
  const bool may_have_body = head.method != "GET" && head.method != "HEAD";
  admission.body_limit = !may_have_body ? 0 : route.request.empty() ? kNoBody : route.body_limit;
  admission.reply_timeout = route.reply_timeout;
  admission.run = [&route, &on_audit, matched = std::move(matched)](HttpRequest request, Responder respond) {
    const auto call = std::make_shared<Call>(Call{std::move(request),
                                                  matched.arguments,
                                                  matched.query,
                                                  respond,
                                                  matched.may_manage,
                                                  matched.may_read,
                                                  matched.caller,
                                                  {}});
    if (route.audit != Audit::none && on_audit) call->respond = audited(call, route, on_audit, std::move(respond));
    guarded(call, [&] {
      if (const auto problem = check_body(route, call->request)) return call->refuse(*problem);
      route.handler(call);
    });
  };
  return admission;
}

}  // namespace

void Call::reply(int status, std::string json) const { respond({status, "application/json", std::move(json), {}}); }
void Call::refuse(const Problem& problem) const { respond(problem_response(problem)); }

std::optional<std::string> Call::parameter(const std::string& name) const {
  const auto it = query.find(name);
  return it == query.end() ? std::nullopt : std::optional(it->second);
}

Router::Router(std::vector<Route> routes, Gate gate, OnAudit on_audit)
    : routes_(std::move(routes)), gate_(std::move(gate)), on_audit_(std::move(on_audit)) {
  for (const Route& route : routes_) templates_.push_back(target_from_text(route.path)->path);
}

std::optional<std::vector<std::string>> Router::match(std::size_t route, const std::vector<std::string>& path) const {
  const auto& pattern = templates_[route];
  if (pattern.size() != path.size()) return {};
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (pattern[i].starts_with('{')) {
      if (path[i].empty()) return {};
      arguments.push_back(path[i]);
    } else if (pattern[i] != path[i]) {
      return {};
    }
  }
  return arguments;
}

Admission Router::admit(const HttpRequest& head) {
  auto target = target_from_text(head.target);
  if (!target) return refused({400, "The path or query is not properly percent-encoded UTF-8."});
  if (target->malformed)
    return refused({400, "The value is not properly percent-encoded UTF-8 without NUL.", *target->malformed});
  std::vector<std::string> other_methods;
  bool is_fixed_path = false;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    auto arguments = match(i, target->path);
    // A fixed path stands before a pattern in the table ("/v1/jobs/cancel" before "/v1/jobs/{job_id}").
    if (!arguments || (is_fixed_path && !arguments->empty())) continue;
    is_fixed_path = is_fixed_path || arguments->empty();
    const Route& route = routes_[i];
    if (route.method != head.method && !(route.method == "GET" && head.method == "HEAD")) {
      other_methods.push_back(route.method);
      continue;
    }
    if (const auto problem = gate_.check(head, route.access)) return refused(*problem);
    std::map<std::string, std::string> query;
    for (auto& [name, value] : target->query) {
      if (std::none_of(route.query.begin(), route.query.end(), [&n = name](const Parameter& p) { return p.name == n; }))
        return refused({400, "There is no such query parameter.", name});
      if (!query.emplace(name, std::move(value)).second)
        return refused({400, "The query parameter is given twice.", name});
    }
    // Ignored, it would let a change through that the caller wants to make only under a condition.
    if (!head.if_match.empty() && !route.takes_if_match && route.method != "GET")
      return refused({400, "If-Match is not supported here.", "If-Match"});
    if (!head.if_none_match.empty() && route.method != "GET")
      return refused({400, "If-None-Match is supported for GET alone.", "If-None-Match"});
    const bool may_manage = route.access == Access::read && !gate_.check(head, Access::manage);
    const bool may_read = route.access != Access::open || !gate_.check(head, Access::read);
    return admitted(route, head, {std::move(*arguments), std::move(query), may_manage, may_read, gate_.caller_of(head)},
                    on_audit_);
  }
  return other_methods.empty() ? refused({404, "There is nothing at this path."})
                               : not_allowed(std::move(other_methods));
}

}  // namespace tocsin
