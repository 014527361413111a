// WatchedCall: limits the time of a call to a server that neither answers nor closes the connection. Session and
// PgListener hold a WatchedCall during each call.
//
// libpq waits for an answer without a limit. TCP keepalives detect a host that died. They do not detect a frozen server
// whose kernel or proxy still acknowledges data: such a call would block its thread for ever. So one thread, for all
// calls of the process, shuts the socket of an overdue call down. The call then fails as if the connection had broken.
// Thread: any.
#pragma once

#include <chrono>
#include <list>

namespace tocsin {

class WatchedCall {
 public:
  // Shuts `socket` down after `patience`, at most half a second late, unless this object is destroyed before. REQUIRES:
  // the socket stays open while this object lives, because another connection could get a closed socket's number.
  WatchedCall(int socket, std::chrono::milliseconds patience);
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  struct Entry {  // an element of the list of watched calls
    int socket;
    std::chrono::steady_clock::time_point deadline;
  };

 private:
  std::list<Entry>::iterator entry_;
};

}  // namespace tocsin
