// RestClient: the REST client that the commands use. Wrong arguments throw BadUsage (cli/config_file.h), failures of a
// call throw Failure.
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
  std::chrono::milliseconds timeout{30'000};  // for each wait for data; connecting takes 5 s at most
};

struct RestReply {
  int status = 0;
  Json body;                                        // null: the reply has no body
  std::string text;                                 // the body as the server wrote it
  std::optional<std::chrono::seconds> retry_after;  // the header Retry-After, if it is whole seconds
  bool ok() const { return status >= 200 && status < 300; }
};

// The text of a body. Throws BadUsage for text that is not UTF-8.
std::string to_text(const Json& body);

// Parameters of a query. with_query() appends them to a path, percent-encoded; a parameter with an empty value is left
// out.
using Query = std::vector<std::pair<std::string, std::string>>;
std::string with_query(const std::string& path, const Query& query);

// One part of a path, percent-encoded; for arguments of the command line, which may hold any character.
std::string path_part(const std::string& text);

// The message of a refusal, "detail (field: x)", from its problem+json body, made printable. After a 401 it also says
// how to give a token.
std::string problem_text(const RestReply& reply);
// Throws problem_text(): as BadUsage if the server says that an argument is malformed (400, or 422 for a time zone that
// does not exist), otherwise as Failure.
[[noreturn]] void throw_problem(const RestReply& reply);

// A list: one page of it, or several pages put together.
struct Pages {
  Json items = Json::array();
  Json missing = Json::array();  // databases that did not answer, by name; from the last page that has this
  std::string next_cursor;       // empty at the end
  std::string text;              // the list as JSON, with numbers as the server wrote them
};
// Reads a list. `query` may have a cursor to begin at. `are_all`: reads every page from there on; false: one page.
// Throws as RestClient does.
Pages read_pages(const Connection& connection, const std::string& path, Query query, bool are_all);

// Keeps its connection open between calls. In all functions `path` begins with /v1 and is encoded (with_query(),
// path_part()). Thread: owner only.
class RestClient {
 public:
  // Throws BadUsage if connection.url is not a URL.
  explicit RestClient(const Connection& connection);
  ~RestClient();
  RestClient(const RestClient&) = delete;

  // Return any answer of the server, whatever its status. Throw Failure if no answer comes in time, or one that is not
  // JSON. call_text() sends no body if `json` is empty.
  RestReply call(const std::string& method, const std::string& path, const Json* body = nullptr);
  RestReply call_text(const std::string& method, const std::string& path, const std::string& json);

  // Return an answer with a 2xx status; any other is thrown (throw_problem()). A `body` of null sends none.
  RestReply get_reply(const std::string& path);
  RestReply send_reply(const std::string& method, const std::string& path, const Json& body);
  // As get_reply() and send_reply(), but return only the body.
  Json get(const std::string& path) { return get_reply(path).body; }
  Json send(const std::string& method, const std::string& path, const Json& body) {
    return send_reply(method, path, body).body;
  }

  // POST; returns the body of the 2xx answer. While the server answers 429 (too busy), waits for its Retry-After (1 s
  // if absent) and repeats the request, without limit.
  Json post_patiently(const std::string& path, const Json& body);

 private:
  struct Transport;
  std::string url_;
  std::string prefix_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace tocsin
