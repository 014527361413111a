// tocsin top: what the cluster does, on one screen of 80 columns, again and again.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/duration.h"
#include "cli/pause.h"
#include "cli/print.h"
#include "cli/table.h"

namespace tocsin {
namespace {

constexpr std::size_t kScreenColumns = 80;
constexpr int kMostReasons = 5;

struct TopOptions : ClientOptions {
  double every_s = 2;
  bool is_once = false;
};

// While it exists, keys are read one by one and without echo.
class RawKeyboard {
 public:
  RawKeyboard() {
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    is_raw_ = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }
  ~RawKeyboard() {
    if (is_raw_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  RawKeyboard(const RawKeyboard&) = delete;
  RawKeyboard& operator=(const RawKeyboard&) = delete;

  // True: q was pressed, or standard input has ended.
  bool quits_within(std::chrono::milliseconds length) const {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, static_cast<int>(length.count())) <= 0) return false;
    char key = 0;
    return read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q';
  }

 private:
  termios before_{};
  bool is_raw_ = false;
};

std::string late_text(const Json& value) { return value.is_number() ? format_duration(value.get<double>()) : "-"; }

// A count, with a plus if it ended at its cap.
std::string count_text(const Json& object, const char* name, const char* is_exact) {
  return cell(object, name) + (object.value(is_exact, true) ? "" : "+");
}

std::string rate_text(const Json& throughput, const char* name) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f/s", throughput.value(name, 0.0));
  return text;
}

// Prints words on as many lines as they need; the first begins with `mark`.
void print_paragraph(std::ostream& out, std::string mark, const std::string& text) {
  std::istringstream words(text);
  std::string line = std::move(mark);
  bool is_begun = false;
  for (std::string word; words >> word; is_begun = true) {
    if (is_begun && line.size() + 1 + word.size() > kScreenColumns) {
      out << clip(line, kScreenColumns) << '\n';
      line = "  " + word;
    } else {
      line += (is_begun ? " " : "") + word;
    }
  }
  if (is_begun) out << clip(line, kScreenColumns) << '\n';
}

// The first lines of the screen, as many as the terminal has, less two for the lines below them.
std::string that_fits(const std::string& screen) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 4) return screen;
  std::size_t end = 0;
  for (int line = 0; line < size.ws_row - 2; ++line) {
    end = screen.find('\n', end);
    if (end++ == screen.npos) return screen;
  }
  return screen.substr(0, end);
}

void print_top(std::ostream& out, const Json& overview) {
  const auto line = [&](const std::string& text) { out << clip(text, kScreenColumns) << '\n'; };
  const Json totals = overview.value("totals", Json::object()), due = overview.value("due", Json::object());
  const Json late = overview.value("lateness_ms", Json::object());
  const Json throughput = overview.value("throughput", Json::object());
  line("tocsin  " + cell(overview, "verdict") + "  " + readable_time(cell(overview, "at"), false) + "  node " +
       cell(overview, "node"));
  line("");
  line("jobs      pending " + cell(totals, "pending") + "  running " + cell(totals, "running") + "  done " +
       cell(totals, "done") + "  cancelled " + cell(totals, "cancelled") + "  dead " + cell(totals, "dead"));
  line("due       now " + count_text(due, "now", "is_now_exact") + "  next minute " + cell(due, "next_minute") +
       (due.value("is_capped", false) ? "+" : "") + "  next hour " + cell(due, "next_hour"));
  line("lateness  p50 " + late_text(late.value("p50", Json())) + "  p99 " + late_text(late.value("p99", Json())) +
       "  max " + late_text(late.value("max", Json())) + "  (" + cell(late, "n") + " starts, " + cell(late, "missed") +
       " missed their target)");
  line("rate      created " + rate_text(throughput, "created_per_s") + "  done " + rate_text(throughput, "done_per_s"));
  line("");
  using Align = Column::Align;
  Table table({{"TYPE", Align::left, true},
               {"DUE", Align::right},
               {"OLDEST", Align::right},
               {"P99", Align::right},
               {"TARGET", Align::right},
               {"MISSED", Align::right},
               {"DIED", Align::right},
               {"WAITS FOR"}});
  for (const Json& type : overview.value("worst", Json::array()))
    table.add({cell(type, "biz_type"), count_text(type, "due", "is_due_exact"),
               type.value("due", 0) > 0 ? late_text(type.value("oldest_age_ms", Json())) : "-",
               late_text(type.value("p99_ms", Json())), late_text(type.value("target_ms", Json())),
               cell(type, "missed"), cell(type, "dead"), cell(type, "waits_for")});
  if (!table.empty()) table.print(out, kScreenColumns);
  // Last: a low terminal cuts them.
  if (!table.empty() && !overview.value("reasons", Json::array()).empty()) line("");
  int shown = 0;
  for (const Json& reason : overview.value("reasons", Json::array())) {
    if (shown == kMostReasons) {
      const auto more = overview["reasons"].size() - static_cast<std::size_t>(kMostReasons);
      line("! and " + std::to_string(more) + " more: see the dashboard, or --once --json");
      break;
    }
    ++shown;
    print_paragraph(out, "! ", cell(reason, "text"));
    print_paragraph(out, "  ", cell(reason, "remedy"));
  }
}

int top(TopOptions& options) {
  RestClient client(options.connection);
  if (options.is_once) {
    const Json overview = client.get("/v1/overview");
    options.json ? print_json(std::cout, overview) : print_top(std::cout, overview);
    return 0;
  }
  const RawKeyboard keyboard;
  const auto every = std::chrono::milliseconds(static_cast<int>(options.every_s * 1000));
  while (true) {
    std::ostringstream screen;
    try {
      print_top(screen, client.get("/v1/overview"));
    } catch (const Failure& failure) {  // the node may come back
      screen << clip(printable(failure.what()), kScreenColumns) << '\n';
    }
    // From the upper left corner, over what was there, and nothing below it.
    std::cout << "\x1b[H\x1b[J" << that_fits(screen.str()) << "\nq quits" << std::flush;
    if (keyboard.quits_within(every)) break;
  }
  std::cout << '\n';
  return 0;
}

}  // namespace

void add_top_command(CLI::App& root, Chosen& chosen) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command = add_command(root, "top", "Watch the cluster: what is due, late and failing", "q quits.");
  add_number(*command, "--every", options->every_s, "Seconds between updates", 0.5, 3600.0);
  command->add_flag("--once", options->is_once, "Print once and exit");
  add_client_options(*command, *options);
  on_run(command, chosen, options, top);
}

}  // namespace tocsin
