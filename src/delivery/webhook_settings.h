// Parses and checks the handler object of a webhook type (URL, secrets, headers, time-out, and whether the receiver
// acknowledges later). Used by WebhookKind; pure functions, thread: any.
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
  std::vector<std::string> keys;  // decoded secrets, 0 to 4; each signs every request; empty: not signed
  Duration timeout = std::chrono::seconds(10);
  // `timeout_ms` was given: it must fit the lease then. The default may be longer; the attempt ends with its lease.
  bool is_timeout_given = false;
  bool is_async = false;                                     // 202 means: the receiver acknowledges later
  std::vector<std::pair<std::string, std::string>> headers;  // sent besides Tocsin's own
};

// Error invalid: Error::field names the setting, such as `handler.url`; the message holds no secret. Whether the
// address may be called is not checked here (AddressGuard).
Result<WebhookSettings> parse_webhook_settings(const std::string& handler_json);

// Validates the settings of a type: an Error as above, or one for a given `timeout_ms` that is longer than `ttr`, the
// length of the type's lease. nullopt: valid.
std::optional<Error> check_webhook(const std::string& handler_json, Duration ttr);

}  // namespace tocsin
