// What must hold of the HTTP server, whatever bytes a connection brings.
#pragma once

#include <string>
#include <vector>

#include "support/http_server_fixture.h"

namespace tocsin {

inline const std::vector<std::string> kHttpRequests = {
    "GET /x HTTP/1.1\r\nHost: x\r\n\r\nGET /y HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Type: application/json\r\n\r\nhello",
    "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nTrailer: x\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
    "GET http://h:1/x?y HTTP/1.0\r\nConnection: keep-alive\r\nAuthorization: Bearer t\r\n\r\n",
};
inline const std::vector<std::string> kHttpSpice = {
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    " ",
    "\t",
    ":",
    std::string(1, '\0'),
    "\xff",
    "Host: y\r\n",
    "Content-Length: 3\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Connection: close\r\n",
    "FFFFFFFFFFFFFFFFF\r\n",
    "0\r\n\r\n",
    "HTTP/2.0",
    "Upgrade: h2c\r\n",
    std::string(9000, 'a'),
    "/refused",
    "/large",
};

// Fails unless the connection ends, with answers or none. `origin`: of the bytes, for messages.
inline void check_http(RawClient hostile, const std::string& bytes, const std::string& origin) {
  // It may have been refused and closed before all was read.
  if (hostile.send(bytes)) hostile.finish_sending();
  const std::string answers = hostile.rest();
  ASSERT_TRUE(answers.empty() || answers.starts_with("HTTP/1.1 ")) << origin << ": " << answers;
}

}  // namespace tocsin
