#include "api/type_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/handler_password.h"
#include "api/job_json.h"
#include "core/rfc3339.h"

namespace tocsin {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::int64_t kMaxDelayMs = 365LL * 24 * 3600 * 1000;
constexpr std::size_t kMaxDelays = 1000;
constexpr std::int64_t kDefaultTimeoutMs = 10'000;  // of a webhook

std::int64_t ms_of(Duration length) { return std::chrono::duration_cast<milliseconds>(length).count(); }

// The handler object and its secrets: none, one, or several in a list.
struct Secrets {
  explicit Secrets(const std::string& handler_json) : handler(json::parse(handler_json, nullptr, false)) {
    const auto it = handler.is_object() ? handler.find("secret") : handler.end();
    if (!handler.is_object() || it == handler.end()) return;
    if (it->is_string()) all.push_back(&*it);
    if (!it->is_array()) return;
    for (json& one : *it)
      if (one.is_string()) all.push_back(&one);
  }
  Secrets(const Secrets&) = delete;
  Secrets& operator=(const Secrets&) = delete;

  json handler;
  std::vector<json*> all;  // in `handler`
};

std::string with_hidden_secrets(const std::string& handler_json) {
  Secrets shown(handler_json);
  for (json* secret : shown.all) *secret = kHiddenSecret;
  return shown.all.empty() ? handler_json : shown.handler.dump();
}

std::string with_hidden_headers(const std::string& handler_json) {
  json handler = json::parse(handler_json, nullptr, false);
  const auto headers = handler.is_object() ? handler.find("headers") : handler.end();
  if (!handler.is_object() || headers == handler.end() || !headers->is_object()) return handler_json;
  for (json& value : *headers) value = kHiddenHeader;
  return handler.dump();
}

void write_backoff(JsonWriter& out, const Backoff& backoff) {
  out.begin_object();
  if (!backoff.delays.empty()) {
    out.key("delays_ms").begin_array();
    for (const Duration delay : backoff.delays) out.value(ms_of(delay));
    out.end_array();
  } else {
    out.field("base_ms", ms_of(backoff.base))
        .field("factor", backoff.factor)
        .field("max_ms", ms_of(backoff.max))
        .field("jitter", backoff.jitter);
  }
  out.end_object();
}

Backoff read_backoff(JsonObject& in) {
  Backoff backoff;
  const auto delays = in.integers("delays_ms", kMaxDelays, {0, kMaxDelayMs});
  if (delays) {
    if (delays->empty()) in.fail("delays_ms", "Must have at least one delay.");
    for (const std::int64_t delay : *delays) backoff.delays.push_back(milliseconds(delay));
    in.end();
    return backoff;
  }
  backoff.base = milliseconds(in.integer("base_ms", {0, kMaxDelayMs}).value_or(ms_of(backoff.base)));
  backoff.factor = in.number("factor", 1, 1000).value_or(backoff.factor);
  const auto max_ms = in.integer("max_ms", {0, kMaxDelayMs});
  backoff.max = max_ms ? milliseconds(*max_ms) : std::max(backoff.max, backoff.base);
  backoff.jitter = in.number("jitter", 0, 1).value_or(backoff.jitter);
  if (backoff.max < backoff.base) in.fail("max_ms", "Must not be less than base_ms.");
  in.end();
  return backoff;
}

void read_handler(JsonObject& in, BizType& type) {
  auto handler = in.require("handler").object("handler");
  if (!handler) return;
  type.handler_kind = handler->require("kind").string("kind", 1, 64).value_or("");
  type.handler_json = in.json_text("handler");
  if (type.handler_kind != "webhook") return;
  const std::int64_t timeout =
      handler->integer("timeout_ms", {1, kMaxTtrMs}).value_or(std::min(kDefaultTimeoutMs, ms_of(type.ttr)));
  if (timeout > ms_of(type.ttr))
    handler->fail("timeout_ms", "Must not be longer than ttr_ms: the lease would end before the attempt.");
}

}  // namespace

void write_type(JsonWriter& out, const BizType& type, WallTime now, Reader reader) {
  out.begin_object().field("name", type.name);
  const std::string handler = with_hidden_password(with_hidden_secrets(type.handler_json));
  out.key("handler").raw(reader == Reader::manager ? handler : with_hidden_headers(handler));
  out.field("ttr_ms", ms_of(type.ttr)).field("max_attempts", type.max_attempts).key("backoff");
  write_backoff(out, type.backoff);
  out.field("max_running", type.max_running).field("rate_per_s", type.rate_per_s);
  out.key("catch_up").begin_object().key("drop_older_than_ms");
  type.drop_older_than ? out.value(ms_of(*type.drop_older_than)) : out.null();
  out.field("rate_per_s", type.catch_up_rate_per_s).end_object();
  out.key("slo");
  if (type.slo) {
    out.begin_object().field("lateness_ms", ms_of(type.slo->lateness)).field("share", type.slo->share).end_object();
  } else {
    out.null();
  }
  const bool is_paused = type.is_paused(now);
  out.field("paused", is_paused).key("paused_until");
  is_paused&& type.paused_until ? out.value(rfc3339(*type.paused_until)) : out.null();
  out.field("gmt_create", rfc3339(type.gmt_create)).field("gmt_modified", rfc3339(type.gmt_modified)).end_object();
}

std::string type_text(const BizType& type, WallTime now, Reader reader) {
  std::string text;
  JsonWriter out(text);
  write_type(out, type, now, reader);
  return text;
}

bool is_type_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == ':' || c == '-';
  };
  return !name.empty() && name.size() <= 128 && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

BizType read_type(JsonObject& in, const std::string& name, std::optional<bool>& paused) {
  BizType type;
  type.name = name;
  type.ttr = milliseconds(in.integer("ttr_ms", {1, kMaxTtrMs}).value_or(ms_of(type.ttr)));
  read_handler(in, type);
  type.max_attempts = static_cast<int>(in.integer("max_attempts", {1, kMaxAttempts}).value_or(type.max_attempts));
  if (auto backoff = in.object("backoff")) type.backoff = read_backoff(*backoff);
  if (const auto n = in.integer("max_running", {1, 1'000'000})) type.max_running = static_cast<int>(*n);
  type.rate_per_s = in.number("rate_per_s", 0.001, 1e6);
  if (auto catch_up = in.object("catch_up")) {
    if (const auto ms = catch_up->integer("drop_older_than_ms", {1, ms_of(kMaxDelay)}))
      type.drop_older_than = milliseconds(*ms);
    type.catch_up_rate_per_s = catch_up->number("rate_per_s", 0.001, 1e6);
    catch_up->end();
  }
  if (auto slo = in.object("slo")) {
    Slo target;
    target.lateness = milliseconds(slo->require("lateness_ms").integer("lateness_ms", {0, kMaxDelayMs}).value_or(0));
    target.share = slo->require("share").number("share", 0, 1).value_or(1);
    slo->end();
    type.slo = target;
  }
  if (const auto same = in.string("name", 0, 1024); same && *same != name)
    in.fail("name", "Is not the name in the path.");
  paused = in.boolean("paused");
  for (const char* reply_only : {"paused_until", "gmt_create", "gmt_modified"}) in.has(reply_only);
  in.end();
  return type;
}

bool restore_secrets(BizType& type, const BizType* stored) {
  Secrets given(type.handler_json);
  const Secrets kept(stored != nullptr ? stored->handler_json : "{}");
  std::size_t used = 0;
  for (json* secret : given.all) {
    if (*secret != kHiddenSecret) continue;
    if (used == kept.all.size()) return false;
    *secret = *kept.all[used++];
  }
  if (used > 0) type.handler_json = given.handler.dump();
  return true;
}

std::optional<std::string> restore_headers(BizType& type, const BizType* stored) {
  json given = json::parse(type.handler_json, nullptr, false);
  const json kept = json::parse(stored != nullptr ? stored->handler_json : "{}", nullptr, false);
  if (!given.is_object() || !given.contains("headers") || !given["headers"].is_object()) return {};
  const json none = json::object();
  const json& known = kept.is_object() && kept.contains("headers") ? kept["headers"] : none;
  bool is_changed = false;
  for (auto& [name, value] : given["headers"].items()) {
    if (value != kHiddenHeader) continue;
    if (!known.is_object() || !known.contains(name)) return name;
    value = known[name];
    is_changed = true;
  }
  if (is_changed) type.handler_json = given.dump();
  return {};
}

}  // namespace tocsin
