// tocsin top on a terminal, as an operator watches it.
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "integration/live_node.h"
#include "support/server.h"

namespace tocsin {
namespace {

constexpr unsigned short kColumns = 80;
const std::string kClear = "\x1b[H\x1b[J", kLastLine = "q quits";

// A program that runs on a terminal of 80 columns.
class Terminal {
 public:
  explicit Terminal(std::vector<std::string> arguments, unsigned short lines = 24) {
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    const winsize size{.ws_row = lines, .ws_col = kColumns, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execv(words[0], words.data());
      ::_exit(127);
    }
    if (pid_ < 0) throw std::runtime_error("no terminal");
  }
  ~Terminal() {
    if (!exit_code()) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // The last screen that has been drawn to its end.
  std::string screen() {
    pollfd output{terminal_, POLLIN, 0};
    char bytes[4096];
    while (::poll(&output, 1, 0) > 0 && (output.revents & POLLIN) != 0) {
      const ssize_t n = ::read(terminal_, bytes, sizeof bytes);
      if (n <= 0) break;
      text_.append(bytes, static_cast<std::size_t>(n));
    }
    const std::size_t end = text_.rfind(kLastLine), begin = text_.rfind(kClear, end);
    if (end == text_.npos || begin == text_.npos) return "";
    return text_.substr(begin + kClear.size(), end - begin - kClear.size());
  }
  bool shows(const std::string& text) {
    return eventually([&] { return screen().find(text) != std::string::npos; });
  }
  void press(char key) { ASSERT_EQ(::write(terminal_, &key, 1), 1); }
  // nullopt: it still runs.
  std::optional<int> exit_code() {
    int status = 0;
    if (!exit_code_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return exit_code_;
  }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  std::string text_;
  std::optional<int> exit_code_;
};

using Top = LiveNode;

TEST_F(Top, IsDrawnAgainSurvivesItsNodeAndEndsWithQ) {
  const std::string address = "127.0.0.1:" + std::to_string(free_port());
  start({"--listen", address});
  const std::string name = "subscription.renewal." + std::string(90, 'x');
  put_noop(name);
  ASSERT_EQ(rest().post("/v1/types/" + name + "/pause").status, 200);
  Terminal top({required_env("TOCSIN_BINARY"), "top", "--every", "0.5", "--url", "http://" + address});
  EXPECT_TRUE(top.shows("pending 0 ")) << top.screen();
  create(name, 0);
  EXPECT_TRUE(top.shows("pending 1 ")) << top.screen();
  EXPECT_TRUE(top.shows("subscription.renewal.")) << top.screen();
  const std::string drawn = top.screen();
  for (std::size_t at = 0; at < drawn.size();) {
    const std::size_t end = std::min(drawn.find("\r\n", at), drawn.size());
    const std::string line = drawn.substr(at, end - at);
    EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), kColumns) << line;
    at = end + 2;
  }

  node().kill();
  EXPECT_TRUE(top.shows(address)) << "the node that does not answer: " << top.screen();
  EXPECT_EQ(top.screen().find("pending"), std::string::npos) << top.screen();
  start({"--listen", address});
  EXPECT_TRUE(top.shows("pending 1 ")) << top.screen();
  EXPECT_FALSE(top.exit_code());
  top.press('x');
  top.press('q');
  EXPECT_TRUE(eventually([&] {
    top.screen();  // what it writes must be read, or it waits
    return top.exit_code().has_value();
  }));
  EXPECT_EQ(top.exit_code(), 0);
}

TEST_F(Top, MarksACountThatEndedAtItsCap) {
  put_noop();
  ASSERT_EQ(rest().post("/v1/types/noop/pause").status, 200);
  database.query("SELECT tocsin.create_job('noop', 'o-' || i, now()) FROM generate_series(1, 2001) i");
  const Ran top = run_tocsin({"top", "--once", "--url", "http://127.0.0.1:" + std::to_string(node().port())});
  EXPECT_NE(top.out.find("due       now 2000+ "), std::string::npos) << top.out;
  EXPECT_NE(top.out.find(" 2000+ "), std::string::npos) << top.out;
  EXPECT_NE(top.out.find("noop"), std::string::npos) << top.out;
}

TEST_F(Top, KeepsItsFirstLinesOnALowTerminal) {
  for (int i = 0; i < 9; ++i) put_noop("type-" + std::to_string(i));
  const std::string url = "http://127.0.0.1:" + std::to_string(node().port());
  Terminal top({required_env("TOCSIN_BINARY"), "top", "--every", "0.5", "--url", url}, 10);
  EXPECT_TRUE(top.shows("TYPE")) << top.screen();
  const std::string drawn = top.screen();
  EXPECT_TRUE(drawn.starts_with("tocsin  ok")) << drawn;
  EXPECT_EQ(std::ranges::count(drawn, '\n'), 9) << "and the tenth says how to quit: " << drawn;
}

}  // namespace
}  // namespace tocsin
