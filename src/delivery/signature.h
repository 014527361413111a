// Webhook signatures after the Standard Webhooks scheme, symmetric variant v1, for requests of types with a secret.
// Pure functions; thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tocsin {

// The key (bytes) inside `whsec_<base64>`; nullopt: the text is anything else, or longer than 1,024 bytes.
std::optional<std::string> decode_webhook_secret(std::string_view secret);

// The webhook-signature header: for each key "v1," and base64 of HMAC-SHA256(key, "<id>.<timestamp>.<body>"), separated
// by spaces. A receiver accepts when one of them is right, so keys can be replaced one after the other. `timestamp`:
// Unix time in seconds, as in the webhook-timestamp header.
std::string sign_webhook(std::span<const std::string> keys, std::string_view id, std::int64_t timestamp,
                         std::string_view body);

}  // namespace tocsin
