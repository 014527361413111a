// RestClient: the REST client of the commands. Wrong arguments throw BadUsage (cli/config_file.h).
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tocsin {

// Keeps the fields of objects in the server's order.
using Json = nlohmann::ordered_json;

// The command failed; the message is human-readable. Exit code 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Connection {
  std::string url = "http://127.0.0.1:7070";  // http or https, with an optional path in front of /v1
  std::string token;                          // empty: none is sent
  std::chrono::milliseconds timeout{30'000};  // of each wait for data; for connecting 5 s at most
};

struct RestReply {
  int status = 0;
  Json body;                                        // null: there is none
  std::string text;                                 // the body as the server wrote it
  std::optional<std::chrono::seconds> retry_after;  // the header, if it is whole seconds
  bool ok() const { return status >= 200 && status < 300; }
};

// A body as it is sent. Throws BadUsage for text that is not UTF-8.
std::string to_text(const Json& body);

// Values of a query, encoded when the path is built; an empty value is left out.
using Query = std::vector<std::pair<std::string, std::string>>;
std::string with_query(const std::string& path, const Query& query);

// One part of a path, percent-encoded: a type name may hold any character.
std::string path_part(const std::string& text);

// "detail (field: x)" of a problem+json body, made printable; after a 401 also how to give a token.
std::string problem_text(const RestReply& reply);
// Throws it: as BadUsage if the server could not read an argument (400, or a time zone that does not exist), else as
// Failure.
[[noreturn]] void throw_problem(const RestReply& reply);

// A list, of one page or of several put together.
struct Pages {
  Json items = Json::array();
  Json missing = Json::array();  // names of databases that did not answer, of the last page that has some
  std::string next_cursor;       // empty at the end
  std::string text;              // the list as JSON text, with numbers as the server wrote them
};
// Reads a list. `query` may have a cursor to begin at. `are_all`: reads every page from there on, else one. Throws
// Failure.
Pages read_pages(const Connection& connection, const std::string& path, Query query, bool are_all);

// Keeps its connection open between calls. A path begins with /v1 and is encoded (with_query(), path_part()).
// Thread: owner only.
class RestClient {
 public:
  // Throws BadUsage when the URL is not one.
  explicit RestClient(const Connection& connection);
  ~RestClient();
  RestClient(const RestClient&) = delete;

  // Any answer of the server is a RestReply. Throws Failure when none comes in time, or one that is not JSON.
  RestReply call(const std::string& method, const std::string& path, const Json* body = nullptr);
  RestReply call_text(const std::string& method, const std::string& path,
                      const std::string& json);  // no body when empty

  // A 2xx answer; any other is thrown (throw_problem). A `body` of null sends none.
  RestReply get_reply(const std::string& path);
  RestReply send_reply(const std::string& method, const std::string& path, const Json& body);
  // Its body.
  Json get(const std::string& path) { return get_reply(path).body; }
  Json send(const std::string& method, const std::string& path, const Json& body) {
    return send_reply(method, path, body).body;
  }

  // POST, for a 2xx answer; while the server answers 429, waits for its Retry-After (1 s without) and asks again, as
  // often as needed.
  Json post_patiently(const std::string& path, const Json& body);

 private:
  struct Transport;
  std::string url_;
  std::string prefix_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace tocsin
