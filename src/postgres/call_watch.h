// WatchedCall: bounds the time of a call to a server that neither answers nor closes the connection. Session and
// PgListener hold one during each call.
//
// libpq waits for an answer without a limit. Keepalives find a host that died, but not a peer whose kernel or proxy
// still acknowledges while the server behind it is frozen or gone: such a call would block its thread for ever. So one
// thread for all calls shuts the socket down, and the call fails as if the connection had broken. Thread: any.
#pragma once

#include <chrono>
#include <list>

namespace tocsin {

class WatchedCall {
 public:
  // Shuts `socket` down when `patience` has passed, or up to half a second later, unless this object is destroyed
  // before. REQUIRES: until then only libpq closes it, when the call fails: a closed socket's number is given again.
  WatchedCall(int socket, std::chrono::milliseconds patience);
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  struct Entry {  // of the list of watched calls
    int socket;
    std::chrono::steady_clock::time_point deadline;
  };

 private:
  std::list<Entry>::iterator entry_;
};

}  // namespace tocsin
