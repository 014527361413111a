// The HTTP server under bytes that are almost requests: whatever comes, every connection ends, and the server serves
// on.
#include "fuzz/mutator.h"
#include "support/http_server_fixture.h"

namespace tocsin {
namespace {

const std::vector<std::string> kHttpRequests = {
    "GET /x HTTP/1.1\r\nHost: x\r\n\r\nGET /y HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Type: application/json\r\n\r\nhello",
    "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nTrailer: x\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
    "GET http://h:1/x?y HTTP/1.0\r\nConnection: keep-alive\r\nAuthorization: Bearer t\r\n\r\n",
};
const std::vector<std::string> kHttpSpice = {
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

TEST_F(HttpServerTest, KeepsServingAfterMalformedInput) {
  start();
  const auto [first, last] = fuzz_seeds(5'000);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    Mutator mutator(seed);
    RawClient hostile = client();
    // It may have been refused and closed before all was read.
    if (hostile.send(mutator.mutate(mutator.any_of(kHttpRequests), kHttpSpice))) hostile.finish_sending();
    const std::string answers = hostile.rest();
    ASSERT_TRUE(answers.empty() || answers.starts_with("HTTP/1.1 ")) << "seed " << seed << ": " << answers;
    if (seed % 100 == 0) {
      ASSERT_EQ(once(kGet).first, 200) << "seed " << seed;
    }
  }
  EXPECT_EQ(once(kGet).first, 200);
}

}  // namespace
}  // namespace tocsin
