// tocsin report: the reports as tables, JSON or CSV.
#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/table.h"

namespace tocsin {
namespace {

constexpr int kReportPage = 1000;
constexpr int kScreen = 100, kAll = 1'000'000;  // rows without --limit
const std::vector<std::string> kReports = {"hour",    "day",   "lateness", "duration", "slo",   "dead",  "dead_now",
                                           "outcome", "delay", "horizon",  "backlog",  "audit", "recent"};

struct ReportOptions : ClientOptions {
  std::string name, type, from, to, tz;
  int limit = 0;  // 0: 100 rows on a screen, all as --csv
  bool csv = false;
};

// RFC 4180: quoted where it must be.
std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// The header is printed even without rows.
void print_csv(std::ostream& out, const Json& columns, const Json& items) {
  const auto print_row = [&](const auto& field_of) {
    const char* comma = "";
    for (const Json& column : columns) {
      out << comma << field_of(column.get<std::string>());
      comma = ",";
    }
    out << "\r\n";
  };
  print_row([](const std::string& name) { return csv_field(name); });
  for (const Json& item : items)
    print_row([&](const std::string& name) { return csv_field(item.value(name, Json())); });
}

// "nothing in this range: 0 created, 0 done"
void print_nothing(std::ostream& out, const Json& totals) {
  std::string text = "nothing in this range";
  const char* before = ": ";
  for (const auto& [name, value] : totals.items()) {
    if (value.is_null()) continue;
    text += before + value.dump() + ' ' + words(name);
    before = ", ";
  }
  print_text(out, text, screen_width());
}

int report(ReportOptions& options) {
  RestClient client(options.connection);
  Json all;
  std::string cursor;
  const int most = options.limit > 0 ? options.limit : options.csv ? kAll : kScreen;
  int left = most;
  do {
    Json page = client.get(
        with_query("/v1/reports/" + path_part(options.name), {{"type", options.type},
                                                              {"from", options.from},
                                                              {"to", options.to},
                                                              {"tz", options.tz},
                                                              {"limit", std::to_string(std::min(left, kReportPage))},
                                                              {"cursor", cursor}}));
    if (all.is_null()) {
      all = page;
    } else {
      for (Json& item : page["items"]) all["items"].push_back(std::move(item));
      all["next_cursor"] = page["next_cursor"];
      all.erase("totals");  // of the first page
    }
    left = most - static_cast<int>(all["items"].size());
    cursor = all["next_cursor"].is_string() ? all["next_cursor"].get<std::string>() : "";
  } while (left > 0 && !cursor.empty());
  note_missing(std::cerr, all);
  const Json& items = all["items"];
  if (options.json) {
    print_json(std::cout, all);
  } else if (options.csv) {
    print_csv(std::cout, all["columns"], items);
  } else if (items.empty()) {
    print_nothing(std::cout, all.value("totals", Json::object()));
  } else {
    print_objects(std::cout, items, screen_width());
  }
  if (!cursor.empty() && !options.json) std::cerr << "there is more: --limit N shows N rows\n";
  return 0;
}

// The names for the help, in lines of at most 80 columns.
std::string report_names() {
  std::string text = "Reports:";
  std::size_t column = text.size();
  for (const std::string& name : kReports) {
    if (column + name.size() + 2 > 80) {
      text += "\n ";
      column = 1;
    }
    text += " " + name + (name == kReports.back() ? "" : ",");
    column += name.size() + 2;
  }
  return text;
}

}  // namespace

void add_report_command(CLI::App& root, Chosen& chosen) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = add_command(root, "report", "Show what has happened, by hour, day and type",
                                  report_names() +
                                      "\nExamples:\n"
                                      "  tocsin report day --type order.unpaid --tz Europe/Berlin\n"
                                      "  tocsin report hour --from 2026-03-01T00:00:00Z --csv > hours.csv\n"
                                      "  tocsin report slo");
  command->add_option("NAME", options->name, "The report")
      ->required()
      ->check(CLI::IsMember(kReports))
      ->option_text(" ");
  command->add_option("--type", options->type, "Only of this type")->check(not_blank)->option_text("TYPE");
  command->add_option("--from", options->from, "Not before (RFC 3339)")->check(not_blank)->option_text("TIME");
  command->add_option("--to", options->to, "Before (RFC 3339)")->check(not_blank)->option_text("TIME");
  command->add_option("--tz", options->tz, "Days of this time zone, like Europe/Berlin")
      ->check(not_blank)
      ->option_text("ZONE");
  add_number(*command, "--limit", options->limit, "At most so many rows (100; with --csv all)", 1, kAll);
  CLI::Option* csv = command->add_flag("--csv", options->csv, "Print comma-separated values");
  add_client_options(*command, *options);
  csv->excludes("--json");
  on_run(command, chosen, options, report);
}

}  // namespace tocsin
