// Webhook signatures by the Standard Webhooks scheme, symmetric variant v1, for types with a secret. Called by
// WebhookKind and parse_webhook_settings(). Pure functions; thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tocsin {

// The key (bytes) in `whsec_<base64>`. nullopt: the text has another form, or is longer than 1,024 bytes.
std::optional<std::string> decode_webhook_secret(std::string_view secret);

// The value of the header webhook-signature: for each key "v1," and the base64 of HMAC-SHA256(key,
// "<id>.<timestamp>.<body>"), separated by spaces. A receiver accepts the request if one of them is right, so keys can
// be replaced one after the other. `id`: of the message, as in the header webhook-id. `timestamp`: Unix time in
// seconds, as in webhook-timestamp.
std::string sign_webhook(std::span<const std::string> keys, std::string_view id, std::int64_t timestamp,
                         std::string_view body);

}  // namespace tocsin
