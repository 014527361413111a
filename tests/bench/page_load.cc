#include "bench/page_load.h"

#include <algorithm>

#include "bench/http_load.h"
#include "cli/pause.h"

namespace tocsin::bench {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr int kBrowsers = 50;
constexpr milliseconds kRefresh(5000);  // the page's default
constexpr int kCycle = 60;              // refreshes until every request has come: the longest interval of the page

std::string since(std::chrono::hours before) {
  const auto hour = std::chrono::floor<std::chrono::hours>(std::chrono::system_clock::now()) - before;
  const auto day = std::chrono::floor<std::chrono::days>(hour);
  const std::chrono::year_month_day date(day);
  char from[40];
  std::snprintf(from, sizeof from, "%04d-%02u-%02uT%02d:00:00.000Z", int(date.year()), unsigned(date.month()),
                unsigned(date.day()), int((hour - day).count()));
  return from;
}

}  // namespace

// What src/dashboard/screens/overview.js asks for, every so many refreshes.
PageLoad::PageLoad(RestClient& rest) {
  add("/v1/overview", 1);
  add("/readyz", 1);
  add_pages(rest, "/v1/reports/slo?limit=1000", 12, 10);
  add_pages(rest, "/v1/reports/horizon?limit=1000", 12, 12);
  add_pages(rest, "/v1/reports/hour?limit=1000&from=" + since(std::chrono::hours(48)), 12, 12);
  add_pages(rest, "/v1/reports/hour?limit=1000&from=" + since(std::chrono::hours(7 * 24)), 60, 12);
  std::ranges::stable_sort(cycle_, {}, &Request::at);
}

void PageLoad::add(const std::string& path, int every) {
  std::string text = request_text("GET", path);
  // As src/dashboard/rest.js: answers of four fifths of the interval will do.
  const auto max_age = std::chrono::duration_cast<std::chrono::seconds>(every * kRefresh * 4 / 5);
  text.insert(text.find("\r\n\r\n"), "\r\nCache-Control: max-age=" + std::to_string(max_age.count()));
  // Browsers were opened at different times.
  for (int browser = 0; browser < kBrowsers; ++browser)
    for (int i = 0; i < kCycle; i += every)
      cycle_.push_back({i * kRefresh + browser * every * kRefresh / kBrowsers, text});
}

void PageLoad::add_pages(RestClient& rest, const std::string& path, int every, int most) {
  std::string page = path;
  for (int i = 0; i < most; ++i) {
    add(page, every);
    const Json cursor = rest.get(page).at("next_cursor");
    if (!cursor.is_string()) return;
    page = path + "&cursor=" + cursor.get<std::string>();
  }
}

void PageLoad::start(int port) {
  is_stopping_ = false;
  thread_ = std::thread([this, port] {
    const auto start = SteadyClock::now();
    Load load;
    load.port = port;
    load.connections = kBrowsers;
    load.next = [&](std::int64_t n, std::string& request) {
      const auto size = static_cast<std::int64_t>(cycle_.size());
      const Request& next = cycle_[static_cast<std::size_t>(n % size)];
      const auto at = start + n / size * kCycle * kRefresh + next.at;
      while (!is_stopping_ && SteadyClock::now() < at)
        pause_for(std::min(milliseconds(20), std::chrono::ceil<milliseconds>(at - SteadyClock::now())));
      request = next.text;
      return !is_stopping_;
    };
    answered_ = run_load(load).answered;
  });
}

std::int64_t PageLoad::stop() {
  is_stopping_ = true;
  if (thread_.joinable()) thread_.join();
  return answered_;
}

}  // namespace tocsin::bench
