// Rows under headings, aligned, and cut to the width of the screen.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace tocsin {

struct Column {
  std::string title;
  enum class Align { left, right } align = Align::left;
  // Cut with an ellipsis when a row is too wide, the widest such column first. If that is not enough, all columns are
  // cut, down to six characters.
  bool may_shrink = false;
};

// Thread: owner only.
class Table {
 public:
  explicit Table(std::vector<Column> columns);
  // Escapes what is not safe on a terminal. REQUIRES: one cell per column.
  void add(std::vector<std::string> cells);
  void print(std::ostream& out, std::size_t width) const;  // `width`: columns of the screen
  bool empty() const { return rows_.empty(); }
  bool fits(std::size_t width) const;  // print() cuts nothing

 private:
  std::vector<std::size_t> natural_widths() const;
  std::vector<std::size_t> widths(std::size_t available) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns of the terminal behind standard output, between 40 and 200; 80 when standard output is no terminal.
std::size_t screen_width();

}  // namespace tocsin
