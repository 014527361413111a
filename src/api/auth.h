// Authentication and authorisation of REST calls: Tokens (who the caller is), Role and Access (what it may do), and
// Gate, with which the router checks every request.
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

// What a route needs of its caller. Open routes need nothing; every role may read; a producer may also write jobs
// (produce), a consumer may also lease and acknowledge them (consume); an admin may do everything.
enum class Access { open, read, produce, consume, manage };

bool allows(Role role, Access access);
std::string_view to_string(Role role);

// The tokens that the node accepts, kept as SHA-256. A look-up takes the same time whichever token matches, so that its
// time tells nothing about them.
// Thread: const after construction.
class Tokens {
 public:
  // [[token]] name = "shop", role = "producer", token = "at least 16 characters" (or sha256 = "hex of it"). Error
  // invalid, field "token_file": the mistake. A file without tokens is a mistake; from_text("") is empty().
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

// The check in front of every route; open routes admit every request. With tokens a request needs a bearer token whose
// role allows the access. Without tokens (the node then listens on loopback only) every request is allowed, but for
// those that a web page could cause: a Host that is not loopback (DNS rebinding) or an Origin of another site. `head`:
// the request; its body is not read. Thread: any.
class Gate {
 public:
  explicit Gate(Tokens tokens) : tokens_(std::move(tokens)) {}
  // nullopt: the request may pass. 401: no token, or an unknown one. 403: its role does not allow the access, or Host
  // or Origin is refused.
  std::optional<Problem> check(const HttpRequest& head, Access access) const;
  // The caller, for the audit log; without a valid token (open routes) name and role are empty. On a node without
  // tokens the role is admin and the name empty. REQUIRES: check() let the request pass.
  Caller caller_of(const HttpRequest& head) const;

 private:
  std::optional<Problem> check_token(const HttpRequest& head, Access access) const;
  static std::optional<Problem> check_local(const HttpRequest& head);

  Tokens tokens_;
};

// Whether `host` is "localhost", in 127.0.0.0/8 or ::1, with or without brackets. It must have no port.
bool is_loopback(std::string_view host);

}  // namespace tocsin
