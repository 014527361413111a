// Parses and checks the handler object of a webhook type: URL, secrets, headers, time-out, and whether the receiver
// acknowledges later. Called by WebhookKind. Pure functions; thread: any.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "delivery/http_sender.h"
#include "tocsin/error.h"

namespace tocsin {

struct WebhookSettings {
  HttpTarget target;
  std::vector<std::string> keys;  // decoded secrets, 0 to 4; each signs every request
  Duration timeout = std::chrono::seconds(10);
  // The settings have `timeout_ms`. A given time-out must not be longer than the lease. The default may be longer: the
  // attempt ends with its lease.
  bool is_timeout_given = false;
  bool is_async = false;                                     // status 202: the receiver acknowledges later
  std::vector<std::pair<std::string, std::string>> headers;  // sent besides Tocsin's own
};

// Error invalid: the field names the setting, such as `handler.url`; the message has no secret. AddressGuard checks
// later whether the address is allowed.
Result<WebhookSettings> parse_webhook_settings(const std::string& handler_json);

// Error invalid as above, or because a given `timeout_ms` is longer than `ttr`, the length of the type's leases.
// nullopt: valid.
std::optional<Error> check_webhook(const std::string& handler_json, Duration ttr);

}  // namespace tocsin
