// A receiver that does what a test tells it, on real loopback sockets: one thread per connection, blocking calls.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tocsin {

struct ReceivedRequest {
  std::string method;
  std::string target;
  std::unordered_map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// PEM texts of a self-signed certificate for `host`.
struct TlsIdentity {
  std::string key;
  std::string certificate;
};
TlsIdentity make_identity(const std::string& host);

class ScriptedServer {
 public:
  // One connection, inside the script.
  class Peer {
   public:
    virtual ~Peer() = default;
    virtual bool read_request() = 0;                 // false: the client has closed
    virtual bool write(std::string_view bytes) = 0;  // false: the client has closed
    virtual void wait_for_close() = 0;
    // Waits that long for the client to close; the pace of a drip.
    virtual bool is_closed_within(std::chrono::milliseconds time) = 0;
  };
  using Script = std::function<void(Peer&)>;  // the connection is closed when it returns

  explicit ScriptedServer(Script script, std::optional<TlsIdentity> identity = {});
  ~ScriptedServer();

  std::uint16_t port() const;
  std::vector<ReceivedRequest> requests() const;
  int connections() const;
  // Waits until so many connections have ended, or requests have come.
  void wait_for_closed(int n);
  void wait_for_requests(int n);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Answers every request with these bytes, on one connection for as long as the client likes.
ScriptedServer::Script always(std::string answer);

}  // namespace tocsin
