// What a node connects to: its databases and the receivers of its types, and nothing else.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "integration/live_node.h"

namespace tocsin {
namespace {

// Set for the programs that are started meanwhile.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const former = std::getenv(name)) former_ = former;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { former_ ? ::setenv(name_, former_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> former_;
};

class Connections : public LiveNode {
 protected:
  // The runtime of a sanitizer need not be the first library that is loaded.
  void start_logged() {
    std::filesystem::remove(path_);
    const Variable preload("LD_PRELOAD", TOCSIN_CONNECTION_LOGGER), log("TOCSIN_CONNECTION_LOG", path_),
        sanitizer("ASAN_OPTIONS", given_options() + "verify_asan_link_order=0");
    start();
  }
  static std::string given_options() {
    const char* const given = std::getenv("ASAN_OPTIONS");
    return given ? std::string(given) + ':' : "";
  }
  std::set<std::string> destinations() const {
    std::ifstream log(path_);
    std::set<std::string> lines;
    for (std::string line; std::getline(log, line);) lines.insert(line);
    return lines;
  }

 private:
  const std::string path_ = required_env("TOCSIN_TEST_DIR") + "/connections.log";
};

TEST_F(Connections, GoToTheDatabaseAndToReceiversOnly) {
  start_logged();
  put_type("order.unpaid", {{"handler", receiver.handler()}});
  put_noop();
  const std::string delivered = create("order.unpaid", 0), fired = create("noop", 0);
  EXPECT_TRUE(becomes(delivered, "done"));
  EXPECT_TRUE(becomes(fired, "done"));
  EXPECT_EQ(node().stop(), 0);

  const auto port_in = [](const std::string& url) {
    const std::size_t at = url.find(':', url.find("127.0.0.1"));
    return url.substr(at + 1, url.find('/', at) - at - 1);
  };
  EXPECT_EQ(destinations(), (std::set<std::string>{"127.0.0.1 " + port_in(database.url()),
                                                   "127.0.0.1 " + port_in(receiver.url()), "name 127.0.0.1"}));
}

}  // namespace
}  // namespace tocsin
