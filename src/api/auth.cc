#include "api/auth.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#include "base/names.h"

namespace tocsin {
namespace {

constexpr std::size_t kShortestToken = 16;
constexpr const char* kRoles[] = {"viewer", "producer", "consumer", "admin"};

std::array<unsigned char, 32> sha256(std::string_view text) {
  std::array<unsigned char, 32> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

std::optional<std::array<unsigned char, 32>> digest_from_hex(const std::string& hex) {
  std::array<unsigned char, 32> digest;
  if (hex.size() != 2 * digest.size() || hex.find_first_not_of("0123456789abcdefABCDEF") != hex.npos) return {};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return digest;
}

std::string lower(std::string_view text) {
  std::string copy(text);
  std::transform(copy.begin(), copy.end(), copy.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return copy;
}

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, std::min(host.find(']'), host.size() - 1) + 1);
  return host.substr(0, host.find(':'));
}

std::optional<std::string_view> bearer_token(const HttpRequest& head) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view text = head.authorization;
  if (lower(text.substr(0, kScheme.size())) != kScheme) return {};
  return text.substr(kScheme.size());
}

Error bad_token(std::size_t number, std::string_view what) {
  return {ErrorCode::invalid, "token " + std::to_string(number) + " of the token file: " + std::string(what),
          "token_file"};
}

}  // namespace

bool allows(Role role, Access access) {
  switch (access) {
    case Access::open:
    case Access::read:
      return true;
    case Access::produce:
      return role == Role::producer || role == Role::admin;
    case Access::consume:
      return role == Role::consumer || role == Role::admin;
    case Access::manage:
      return role == Role::admin;
  }
  return false;
}

std::string_view to_string(Role role) { return name_of(kRoles, role); }

Result<Tokens> Tokens::from_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return Error{ErrorCode::invalid, "cannot read the token file " + path, "token_file"};
  auto tokens = from_text(text.str());
  // A file without tokens would open the node to every caller: certainly a mistake.
  if (tokens && tokens->empty())
    return Error{ErrorCode::invalid, "the token file " + path + " has no [[token]]", "token_file"};
  return tokens;
}

Result<Tokens> Tokens::from_text(std::string_view text) {
  Tokens tokens;
  try {
    const toml::table file = toml::parse(text);
    for (const auto& [name, node] : file) {
      if (name != "token" || !node.is_array_of_tables())
        return Error{ErrorCode::invalid, "the token file may have [[token]] only, not " + std::string(name.str()),
                     "token_file"};
    }
    const toml::array* list = file["token"].as_array();
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const toml::table& entry = *(*list)[i].as_table();
      for (const auto& [key, node] : entry) {
        if (key != "name" && key != "role" && key != "token" && key != "sha256")
          return bad_token(i + 1, "unknown key " + std::string(key.str()));
      }
      const auto secret = entry["token"].value<std::string>();
      const auto hex = entry["sha256"].value<std::string>();
      const auto role = value_named<Role>(kRoles, entry["role"].value_or(std::string()));
      const auto name = entry["name"].value<std::string>();
      if (!name || name->empty()) return bad_token(i + 1, "needs a name");
      if (!role) return bad_token(i + 1, "role must be admin, producer, consumer or viewer");
      if (secret.has_value() == hex.has_value()) return bad_token(i + 1, "needs one of token and sha256");
      if (secret && secret->size() < kShortestToken) return bad_token(i + 1, "must have at least 16 characters");
      const auto digest = secret ? sha256(*secret) : digest_from_hex(*hex);
      if (!digest) return bad_token(i + 1, "sha256 must have 64 hex digits");
      tokens.tokens_.push_back({*name, *role, *digest});
    }
  } catch (const toml::parse_error& error) {
    return Error{ErrorCode::invalid, "the token file is not TOML: " + std::string(error.description()), "token_file"};
  }
  return tokens;
}

std::optional<Tokens::Holder> Tokens::holder_of(std::string_view token) const {
  const Digest digest = sha256(token);
  const Entry* found = nullptr;
  for (const Entry& entry : tokens_) {  // all of them: the time must not say which one matched
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  if (!found) return {};
  return Holder{found->name, found->role};
}

std::optional<Problem> Gate::check(const HttpRequest& head, Access access) const {
  if (access == Access::open) return {};
  return tokens_.empty() ? check_local(head) : check_token(head, access);
}

std::optional<Problem> Gate::check_token(const HttpRequest& head, Access access) const {
  const auto token = bearer_token(head);
  if (!token) return Problem{401, "Send a token: Authorization: Bearer TOKEN."};
  const auto holder = tokens_.holder_of(*token);
  if (!holder) return Problem{401, "The token is not known."};
  if (!allows(holder->role, access))
    return Problem{403, "A token with the role " + std::string(to_string(holder->role)) + " may not do this."};
  return {};
}

Caller Gate::caller_of(const HttpRequest& head) const {
  if (tokens_.empty()) return {"", std::string(to_string(Role::admin)), head.address};
  const auto holder = tokens_.holder_of(bearer_token(head).value_or(""));
  if (!holder) return {"", "", head.address};  // a route that is open to all
  return {holder->name, std::string(to_string(holder->role)), head.address};
}

std::optional<Problem> Gate::check_local(const HttpRequest& head) {
  if (!head.host.empty() && !is_loopback(without_port(head.host)))
    return Problem{403, "Without tokens only this machine is served: Host must be localhost or a loopback address."};
  if (!head.origin.empty() && lower(head.origin) != "http://" + lower(head.host) &&
      lower(head.origin) != "https://" + lower(head.host))
    return Problem{403, "Without tokens, web pages from elsewhere are not served."};
  return {};
}

bool is_loopback(std::string_view host) {
  std::string text = lower(host);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  if (text == "localhost") return true;
  if (in_addr v4{}; inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace tocsin
