// Authentication and authorisation of REST calls. Tokens says who a caller is, Role and Access say what the caller may
// do, and Gate checks each request. Router (router.h) owns the Gate.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/problem.h"
#include "audit/audit.h"
#include "tocsin/error.h"

namespace tocsin {

enum class Role { viewer, producer, consumer, admin };

// What a route requires of its caller:
// - open: nothing, not even a token.
// - read: any role.
// - produce (write jobs): the role producer or admin.
// - consume (lease jobs and report their outcomes): the role consumer or admin.
// - manage: the role admin.
enum class Access { open, read, produce, consume, manage };

bool allows(Role role, Access access);
std::string_view to_string(Role role);

// The tokens that the node accepts, kept as SHA-256. A look-up compares all of them, so its duration does not tell
// which token matched. Thread: const after construction.
class Tokens {
 public:
  // Read TOML with entries of this form (sha256 = "64 hex digits" may replace token):
  // [[token]] name = "shop", role = "producer", token = "at least 16 characters"
  // Error invalid, field "token_file": the mistake. No entries are an error in from_file(); from_text() returns empty
  // Tokens.
  static Result<Tokens> from_file(const std::string& path);
  static Result<Tokens> from_text(std::string_view toml);

  bool empty() const { return tokens_.empty(); }
  struct Holder {
    std::string name;
    Role role;
  };
  std::optional<Holder> holder_of(std::string_view token) const;  // nullopt: not a token of this node

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    std::string name;
    Role role;
    Digest digest;
  };
  std::vector<Entry> tokens_;
};

// The check before every route; open routes admit every request.
// - With tokens, a request must have a bearer token whose role allows the access.
// - Without tokens the node listens on loopback only, and every request is allowed unless a web page may have caused
//   it: its Host is not loopback (DNS rebinding), or its Origin is another site.
//
// `head`: the request without its body. Thread: any.
class Gate {
 public:
  explicit Gate(Tokens tokens) : tokens_(std::move(tokens)) {}
  // nullopt: the request may pass. 401: the token is missing or unknown. 403: the token's role does not allow the
  // access, or Host or Origin is refused.
  std::optional<Problem> check(const HttpRequest& head, Access access) const;
  // The caller, for the audit log. On a node without tokens: no name, role "admin". On an open route without a valid
  // token: no name, no role. REQUIRES: check() let the request pass.
  Caller caller_of(const HttpRequest& head) const;

 private:
  std::optional<Problem> check_token(const HttpRequest& head, Access access) const;
  static std::optional<Problem> check_local(const HttpRequest& head);

  Tokens tokens_;
};

// Whether `host` is "localhost", in 127.0.0.0/8, or ::1 (brackets allowed). REQUIRES: `host` has no port.
bool is_loopback(std::string_view host);

}  // namespace tocsin
