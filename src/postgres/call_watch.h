// WatchedCall: bounds the time of a database call to a server that neither answers nor closes the connection.
//
// libpq waits for an answer without a limit. Keepalives find a host that died, but not a peer whose kernel or proxy
// still acknowledges while the server behind it is frozen or gone: such a call would hold its thread for ever. A thread
// of the process shuts the socket down, and the call fails like any other whose connection broke. Thread: any.
#pragma once

#include <chrono>
#include <list>

namespace tocsin {

class WatchedCall {
 public:
  // Watches `socket` until this object is destroyed; shuts it down once, when `patience` has passed, at most half a
  // second later. REQUIRES: meanwhile only a failure that ends the call closes the socket.
  WatchedCall(int socket, std::chrono::milliseconds patience);
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  struct Entry {
    int socket;
    std::chrono::steady_clock::time_point deadline;
  };

 private:
  std::list<Entry>::iterator entry_;
};

}  // namespace tocsin
