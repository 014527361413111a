// Authentication and authorisation of REST calls: tokens, their roles, and the gate in front of every route.
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

// What a call needs. Open calls need nothing; every role may read; producers may also write jobs, consumers may
// also lease and acknowledge; admins may do everything.
enum class Access { open, read, produce, consume, manage };

bool allows(Role role, Access access);
std::string_view to_string(Role role);

// The tokens that the node accepts, kept as SHA-256. A look-up takes the same time whichever token matches.
// Thread: const after construction.
class Tokens {
 public:
  // [[token]] name = "shop", role = "producer", token = "at least 16 characters" (or sha256 = "hex of it").
  // Error invalid: the mistake; a file without tokens is one, an empty text is not.
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

// The check in front of every route; open calls always pass. With tokens a call needs a bearer token whose role allows
// the access. Without tokens the node listens on loopback only and allows everything, but refuses requests that a web
// page could cause: a Host that is not loopback (DNS rebinding) or an Origin of another site. Thread: any.
class Gate {
 public:
  explicit Gate(Tokens tokens) : tokens_(std::move(tokens)) {}
  std::optional<Problem> check(const HttpRequest& head, Access access) const;  // nullopt: the call may pass
  // The caller, for the audit log. REQUIRES: check() let the request pass.
  Caller caller_of(const HttpRequest& head) const;

 private:
  std::optional<Problem> check_token(const HttpRequest& head, Access access) const;
  static std::optional<Problem> check_local(const HttpRequest& head);

  Tokens tokens_;
};

// "localhost", 127.0.0.0/8 or ::1, with or without brackets; no port.
bool is_loopback(std::string_view host);

}  // namespace tocsin
