// Guided fuzzing of the HTTP server: the input is what a connection sends.
#include "fuzz/http_check.h"
#include "guided/target.h"

namespace tocsin {
namespace {

// The server of the fixture without its test.
class Server : public HttpServerTest {
 public:
  Server() { start(); }
  void TestBody() override {}
};

}  // namespace

GuidedTarget guided_target() {
  const auto server = std::make_shared<Server>();
  return {kHttpRequests, kHttpSpice, [server](const std::string& bytes) {
            check_http(server->client(), bytes, "input");
            EXPECT_EQ(server->once(kGet).first, 200);
          }};
}

}  // namespace tocsin
