#include "api/openapi.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/json_writer.h"

namespace tocsin {
namespace {

std::string schema_ref(const std::string& name) { return R"({"$ref":"#/components/schemas/)" + name + "\"}"; }

void write_json_content(JsonWriter& out, const std::string& schema, std::string_view type = "application/json") {
  out.key("content")
      .begin_object()
      .key(type)
      .begin_object()
      .key("schema")
      .raw(schema_ref(schema))
      .end_object()
      .end_object();
}

// `in`: path, query or header.
void write_parameter(JsonWriter& out, std::string_view name, std::string_view in, std::string_view schema,
                     std::string_view description) {
  out.begin_object().field("name", name).field("in", in).field("required", in == "path");
  out.field("description", description).key("schema").raw(schema).end_object();
}

void write_parameters(JsonWriter& out, const Route& route) {
  static const std::map<std::string, std::pair<const char*, const char*>> described = {
      {"job_id", {"JobId", "The job"}},
      {"bulk_id", {"BulkId", "The bulk operation"}},
      {"name", {"TypeName", "Name of the type"}}};
  out.key("parameters").begin_array();
  for (std::size_t open = route.path.find('{'); open != std::string::npos; open = route.path.find('{', open + 1)) {
    const std::string name = route.path.substr(open + 1, route.path.find('}', open) - open - 1);
    const auto& [schema, what] = described.at(name);
    write_parameter(out, name, "path", schema_ref(schema), what);
  }
  for (const Parameter& parameter : route.query)
    write_parameter(out, parameter.name, "query", parameter.schema, parameter.description);
  if (route.takes_if_match)
    write_parameter(out, "If-Match", "header", R"({"type":"string"})",
                    "Only if one of these entity tags is that of the stored version; * for any version that exists");
  out.end_array();
}

// The statuses that this route may answer with a problem: route.errors, and those that follow from its access and body.
std::set<int> error_statuses(const Route& route) {
  std::set<int> statuses(route.errors.begin(), route.errors.end());
  statuses.insert(400);
  if (route.access != Access::open) statuses.insert({401, 403});
  if (!route.request.empty()) statuses.insert({413, 415});
  for (const Reply& reply : route.replies) statuses.erase(reply.status);
  return statuses;
}

void write_operation(JsonWriter& out, const Route& route) {
  out.begin_object().field("operationId", route.operation_id).field("summary", route.summary);
  out.key("tags").begin_array().value(route.tag).end_array();
  write_parameters(out, route);
  if (!route.request.empty()) {
    out.key("requestBody").begin_object().field("required", !route.is_body_optional);
    write_json_content(out, route.request);
    out.end_object();
  }
  out.key("responses").begin_object();
  for (const Reply& reply : route.replies) {
    out.key(std::to_string(reply.status)).begin_object().field("description", reason_phrase(reply.status));
    if (!reply.schema.empty())
      write_json_content(out, reply.schema, reply.status == 409 ? "application/problem+json" : "application/json");
    out.end_object();
  }
  for (const int status : error_statuses(route)) {
    out.key(std::to_string(status)).begin_object().field("description", reason_phrase(status));
    write_json_content(out, "Problem", "application/problem+json");
    out.end_object();
  }
  out.end_object();
  if (route.access == Access::open) out.key("security").begin_array().end_array();
  out.end_object();
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

void write_paths(JsonWriter& out, const std::vector<Route>& routes) {
  out.key("paths").begin_object();
  std::set<std::string> written;
  for (const Route& first : routes) {
    if (!written.insert(first.path).second) continue;
    out.key(first.path).begin_object();
    for (const Route& route : routes) {
      if (route.path != first.path) continue;
      out.key(lower(route.method));
      write_operation(out, route);
    }
    out.end_object();
  }
  out.end_object();
}

}  // namespace

std::string openapi_text(const std::vector<Route>& routes, std::string_view version) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("openapi", "3.1.0");
  out.key("info").begin_object().field("title", "Tocsin").field("version", version);
  out.field("description", "A timeout center: hand it a deadline, and it acts on time.").end_object();
  out.key("security").raw(R"([{"bearer":[]},{}])");
  write_paths(out, routes);
  out.key("components").begin_object();
  out.key("securitySchemes").raw(R"({"bearer":{"type":"http","scheme":"bearer"}})");
  out.key("schemas").raw(openapi_schemas()).end_object().end_object();
  return text;
}

}  // namespace tocsin
