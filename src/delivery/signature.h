// Webhook signatures after the Standard Webhooks scheme, symmetric variant v1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin {

// The key inside `whsec_<base64>`; empty when the text is anything else.
std::optional<std::string> decode_webhook_secret(std::string_view secret);

// The webhook-signature header: "v1," and base64 of HMAC-SHA256(key, "<id>.<timestamp>.<body>").
std::string sign_webhook(std::string_view key, std::string_view id, std::int64_t timestamp, std::string_view body);

}  // namespace tocsin
