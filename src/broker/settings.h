// Settings: reads the JSON settings of a broker (of a type's handler, or of an entry topic) strictly. Error invalid: a
// field is unknown, missing or out of range; the Error names the field and shows no secret. Used by the functions that
// read exits and entries, such as read_kafka_exit() (kafka/kafka.h).
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "tocsin/error.h"

namespace tocsin {

struct BrokerUrl {
  std::string host;
  std::uint16_t port = 0;
  std::string user, password;  // decoded; may be empty
  std::string path;            // decoded, without the slash in front
  bool has_path = false;       // `path` was given and is not empty
  std::string shown;           // scheme://host:port, for logs and errors
};

// It stores the first mistake; after it every field reads as absent. So a caller reads all fields, and then calls end()
// once. The field `kind` is always allowed: it has selected the reader. Thread: owner only.
class Settings {
 public:
  // `json`: text of an object; other text is the first mistake. `path`: prefix of Error::field, such as "handler.".
  Settings(const std::string& json, std::string path);
  ~Settings();

  // nullopt: the field is absent, null or wrong (see end()). Texts are UTF-8 without control characters. `least` and
  // `most` are allowed values.
  std::optional<std::string> text(const std::string& name, std::size_t most_bytes = 255);
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t least, std::int64_t most);
  std::optional<bool> boolean(const std::string& name);
  // scheme://[user[:password]@]host[:port][/path], 2048 bytes at most
  std::optional<BrokerUrl> url(const std::string& name, const std::string& scheme, std::uint16_t default_port);

  // The field must be present and not empty.
  std::string required_text(const std::string& name, std::size_t most_bytes = 255);
  BrokerUrl required_url(const std::string& name, const std::string& scheme, std::uint16_t default_port);

  const std::optional<Error>& problem() const { return error_; }  // the first mistake so far
  // Stores a mistake that the caller found.
  void fail(const std::string& name, const std::string& why);
  // The first mistake, unknown fields included; nullopt: there is none.
  std::optional<Error> end();

 private:
  const nlohmann::json* find(const std::string& name);

  const std::unique_ptr<nlohmann::json> object_;
  const std::string path_;
  std::set<std::string> asked_;
  std::optional<Error> error_;
};

// Prefix of the fields of a handler in errors.
inline const std::string kHandlerPath = "handler.";

}  // namespace tocsin
