#include "delivery/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "base/assert.h"

namespace tocsin {
namespace {

std::string to_base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL ends it with a NUL
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(n));
  return text;
}

}  // namespace

std::optional<std::string> decode_webhook_secret(std::string_view secret) {
  constexpr std::string_view kPrefix = "whsec_";
  constexpr std::size_t kMaxSecretBytes = 1024;
  if (!secret.starts_with(kPrefix) || secret.size() > kMaxSecretBytes) return {};
  const std::string_view text = secret.substr(kPrefix.size());
  std::string key(text.size(), '\0');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(key.data()),
                                reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (n <= 0) return {};
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  key.resize(static_cast<std::size_t>(n) - padding);
  // OpenSSL ignores white space around the text, and stray bits at its end: only the one right spelling passes.
  if (to_base64(key) != text) return {};
  return key;
}

std::string sign_webhook(std::span<const std::string> keys, std::string_view id, std::int64_t timestamp,
                         std::string_view body) {
  std::string content;
  content.reserve(id.size() + body.size() + 24);
  content.append(id).append(1, '.').append(std::to_string(timestamp)).append(1, '.').append(body);
  std::string header;
  for (const std::string& key : keys) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    const unsigned char* made =
        HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data(), &size);
    TOCSIN_ASSERT(made != nullptr);
    header += (header.empty() ? "v1," : " v1,") + to_base64({reinterpret_cast<const char*>(digest.data()), size});
  }
  return header;
}

}  // namespace tocsin
