#include "bench/report.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <ostream>

#include "cli/rest_client.h"
#include "cli/table.h"

namespace tocsin::bench {
namespace {

constexpr std::size_t kWidth = 96;

// Three digits that matter, and thousands apart: 0.42, 3.1, 57, 12,345.
std::string number(double value) {
  const double size = std::fabs(value);
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", size == 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2, value);
  std::string digits = text;
  if (digits.find('.') == std::string::npos) {
    const std::size_t sign = digits[0] == '-';
    for (std::size_t at = digits.size(); at > sign + 3;) digits.insert(at -= 3, ",");
  }
  return digits;
}

struct Row {
  std::string title, measured, floor, share, target;
};

// Higher is better for rates; for times, lower is.
std::string share_of(const Figure& figure, double value, double floor) {
  const double share = figure.unit == "us" || figure.unit == "ms" ? floor / value : value / floor;
  return std::to_string(std::lround(100 * share)) + "%";
}

std::vector<Row> rows_of(const Section& section, const Report& report) {
  std::vector<Row> rows;
  for (const Figure& figure : section.figures) {
    const auto value = report.results.of(figure);
    if (!value) continue;
    Row row{figure.title, number(*value) + (figure.unit.empty() ? "" : " " + figure.unit), "", "", figure.target};
    Figure floor;
    floor.name = figure.floor;
    if (const auto base = report.results.of(floor)) {
      row.floor = number(*base);
      row.share = share_of(figure, *value, *base);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string rounds_text(const Report& report) {
  std::string text = report.rounds == 1 ? "1 round" : "medians of " + std::to_string(report.rounds) + " rounds";
  if (report.nodes > 1) text += ", " + std::to_string(report.nodes) + " nodes";
  if (report.is_quick) text += "; quick: a tenth of the work, for trying out, not for comparing";
  return text;
}

}  // namespace

void print_table(std::ostream& out, const Report& report) {
  using Align = Column::Align;
  Table table({{"", Align::left, true},
               {"measured", Align::right},
               {"floor", Align::right},
               {"share", Align::right},
               {"target"}});
  for (const Section& section : report.sections) {
    const auto rows = rows_of(section, report);
    if (rows.empty()) continue;
    table.add({section.title, "", "", "", ""});
    for (const Row& row : rows) table.add({"  " + row.title, row.measured, row.floor, row.share, row.target});
  }
  table.print(out, kWidth);
  out << '\n';
  for (const auto& [what, how] : report.machine) out << what << std::string(13 - what.size(), ' ') << how << '\n';
  out << "rounds       " << rounds_text(report) << '\n';
}

void print_markdown(std::ostream& out, const Report& report) {
  out << "| | measured | floor | share | target |\n|---|---:|---:|---:|---|\n";
  for (const Section& section : report.sections) {
    const auto rows = rows_of(section, report);
    if (!rows.empty()) out << "| **" << section.title << "** | | | | |\n";
    for (const Row& row : rows)
      out << "| " << row.title << " | " << row.measured << " | " << row.floor << " | " << row.share << " | "
          << row.target << " |\n";
  }
  out << '\n';
  for (const auto& [what, how] : report.machine) out << "- " << what << ": " << how << '\n';
  out << "- rounds: " << rounds_text(report) << '\n';
}

void write_json(const std::string& path, const Report& report) {
  std::ofstream file(path);
  Json run = {{"record", "run"},
              {"machine", Json::object()},
              {"rounds", report.rounds},
              {"nodes", report.nodes},
              {"quick", report.is_quick}};
  for (const auto& [what, how] : report.machine) run["machine"][what] = how;
  file << run.dump() << '\n';
  for (const Section& section : report.sections) {
    for (const Figure& figure : section.figures) {
      const auto found = report.results.values().find(figure.name);
      if (found == report.results.values().end()) continue;
      const Json line = {{"record", "figure"},
                         {"name", figure.name},
                         {"unit", figure.unit},
                         {"value", *report.results.of(figure)},
                         {"rounds", found->second}};
      file << line.dump() << '\n';
    }
  }
  for (const auto& [series, point] : report.results.points()) {
    Json line = {{"record", "point"}, {"series", series}};
    for (const auto& [name, value] : point) line[name] = value;
    file << line.dump() << '\n';
  }
  if (!file.flush()) throw Failure("cannot write " + path);
}

}  // namespace tocsin::bench
