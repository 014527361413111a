// Rest: a client of a node's REST interface, on this machine. `path`: with the query, such as /v1/jobs?limit=1.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace tocsin {

using Json = nlohmann::json;

struct Reply {
  int status = 0;  // 0: no answer
  Json body;       // null when it is no JSON
  std::string text;
};

// Thread: owner only.
class Rest {
 public:
  explicit Rest(int port, const std::string& token = "");
  ~Rest();
  Rest(Rest&&) noexcept;
  Rest& operator=(Rest&&) noexcept;

  Reply get(const std::string& path);
  Reply put(const std::string& path, const Json& body);
  Reply post(const std::string& path, const Json& body = Json::object());
  Reply remove(const std::string& path);

 private:
  struct Client;
  std::unique_ptr<Client> client_;
};

}  // namespace tocsin
