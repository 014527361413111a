#include "replay/data.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

namespace tocsin::replay {
namespace {

constexpr const char* kRecords = "boston311_2015.csv.gz";
constexpr const char* kHeader = "id,opened_at,target_at,closed_at,published_ontime,published_status";

std::string quoted(const std::string& text) {
  std::string safe = "'";
  for (const char c : text) safe += c == '\'' ? "'\\''" : std::string(1, c);
  return safe + "'";
}

// Calls `take` with every line that a shell command prints; throws when it fails.
void read_lines(const std::string& command, const std::function<void(std::string)>& take) {
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe)) {
    std::string text = line.data();
    text.erase(text.find_last_not_of("\r\n") + 1);
    take(std::move(text));
  }
  if (::pclose(pipe) != 0) throw std::runtime_error("failed: " + command);
}

// No field of these files is quoted.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',')
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

Truth truth_from(const std::string& word) {
  if (word == "fire") return Truth::fire;
  if (word == "cancel") return Truth::cancel;
  if (word == "either") return Truth::either;
  throw std::runtime_error("truth.py says '" + word + "'");
}

std::unordered_map<std::string, Truth> read_truth(const std::string& folder, double guard) {
  std::unordered_map<std::string, Truth> truth;
  const std::string command =
      "python3 " + quoted(folder + "/truth.py") + " verdicts boston-target " + std::to_string(guard);
  read_lines(command, [&](const std::string& line) {
    const auto fields = fields_of(line);
    if (fields.size() != 2) throw std::runtime_error("truth.py says '" + line + "'");
    truth[fields[0]] = truth_from(fields[1]);
  });
  return truth;
}

}  // namespace

bool has_data(const std::string& folder) {
  return !folder.empty() && std::filesystem::exists(folder + "/" + kRecords) &&
         std::filesystem::exists(folder + "/truth.py");
}

std::vector<Request> read_requests(const std::string& folder, double guard) {
  const auto truth = read_truth(folder, guard);
  std::vector<Request> requests;
  bool is_header = true;
  read_lines("gzip -dc " + quoted(folder + "/" + kRecords), [&](const std::string& line) {
    if (is_header) {
      if (line != kHeader) throw std::runtime_error("unknown columns: " + line);
      is_header = false;
      return;
    }
    const auto fields = fields_of(line);
    if (fields.size() != 6) throw std::runtime_error("bad row: " + line);
    if (fields[2].empty()) return;  // no deadline
    Request request;
    request.id = fields[0];
    request.opened = parse_data_time(fields[1]);
    request.target = parse_data_time(fields[2]);
    if (!fields[3].empty()) request.closed = std::max(parse_data_time(fields[3]), request.opened);
    request.published = fields[4] == "OVERDUE"  ? Published::overdue
                        : fields[4] == "ONTIME" ? Published::ontime
                                                : Published::nothing;
    request.truth = truth.at(request.id);
    requests.push_back(std::move(request));
  });
  if (requests.size() != truth.size())
    throw std::runtime_error("truth.py and the records disagree on how many have a deadline");
  std::sort(requests.begin(), requests.end(),
            [](const Request& a, const Request& b) { return std::tie(a.opened, a.id) < std::tie(b.opened, b.id); });
  return requests;
}

DataTime parse_data_time(const std::string& text) {
  tm parts{};
  const char* end = ::strptime(text.c_str(), text.size() > 10 ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d", &parts);
  if (!end || *end) throw std::runtime_error("'" + text + "' is no time like 2015-02-10 13:58:23");
  return ::timegm(&parts);
}

}  // namespace tocsin::replay
