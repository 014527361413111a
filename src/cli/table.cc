#include "cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "base/assert.h"
#include "base/text.h"

namespace tocsin {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 6;  // a shrunk column still shows how a name begins

void print_row(std::ostream& out, const std::vector<Column>& columns, const std::vector<std::string>& cells,
               const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = clip(cells[i], widths[i]);
    const std::string padding(widths[i] - display_width(cell), ' ');
    if (i > 0) line.append(kGap, ' ');
    line += columns[i].align == Column::Align::right ? padding + cell : cell + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out << line << '\n';
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  TOCSIN_ASSERT(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::natural_widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
  }
  return widths;
}

bool Table::fits(std::size_t width) const {
  const auto all = natural_widths();
  return std::accumulate(all.begin(), all.end(), kGap * (columns_.size() - 1)) <= width;
}

std::vector<std::size_t> Table::widths(std::size_t available) const {
  std::vector<std::size_t> widths = natural_widths();
  std::size_t total = std::accumulate(widths.begin(), widths.end(), kGap * (columns_.size() - 1));
  // First the columns with may_shrink are cut; if that does not suffice, all columns: a line never wraps.
  for (const bool shrinks_all : {false, true}) {
    while (total > available) {
      std::size_t* widest = nullptr;
      for (std::size_t i = 0; i < columns_.size(); ++i)
        if ((columns_[i].may_shrink || shrinks_all) && widths[i] > kNarrowest && (!widest || widths[i] > *widest))
          widest = &widths[i];
      if (!widest) break;
      --*widest;
      --total;
    }
  }
  return widths;
}

void Table::print(std::ostream& out, std::size_t width) const {
  const std::vector<std::size_t> all = widths(width);
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  print_row(out, columns_, titles, all);
  for (const auto& row : rows_) print_row(out, columns_, row, all);
}

std::size_t screen_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::clamp<std::size_t>(size.ws_col, 40, 200);
}

}  // namespace tocsin
