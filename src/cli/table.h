// Rows under headings, aligned, never wider than the screen.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace tocsin {

struct Column {
  std::string title;
  enum class Align { left, right } align = Align::left;
  bool may_shrink = false;  // cut with an ellipsis when the row is too wide; the widest of these shrinks first
};

// Cells are made printable as they come in.
// Thread: owner only.
class Table {
 public:
  explicit Table(std::vector<Column> columns);
  // REQUIRES: one cell per column.
  void add(std::vector<std::string> cells);
  void print(std::ostream& out, std::size_t width) const;
  bool empty() const { return rows_.empty(); }
  bool fits(std::size_t width) const;  // without cutting anything

 private:
  std::vector<std::size_t> natural_widths() const;
  std::vector<std::size_t> widths(std::size_t available) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns of the terminal behind standard output, between 40 and 200; 80 when it is none.
std::size_t screen_width();

}  // namespace tocsin
