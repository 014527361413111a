// Table: rows under headings, aligned, and cut to the width of the screen. Used by the printing functions (cli/print.h)
// and by commands.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace tocsin {

struct Column {
  std::string title;
  enum class Align { left, right } align = Align::left;
  // If a row is too wide, columns with may_shrink are cut with an ellipsis, the widest first. If that is not enough,
  // all columns are cut. No column gets narrower than six characters.
  bool may_shrink = false;
};

// Thread: owner only.
class Table {
 public:
  explicit Table(std::vector<Column> columns);
  // Adds a row; escapes characters that are not safe on a terminal. REQUIRES: one cell per column.
  void add(std::vector<std::string> cells);
  void print(std::ostream& out, std::size_t width) const;  // `width`: columns of the screen
  bool empty() const { return rows_.empty(); }
  bool fits(std::size_t width) const;  // whether print() would cut nothing

 private:
  std::vector<std::size_t> natural_widths() const;
  std::vector<std::size_t> widths(std::size_t available) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns of the terminal behind standard output, clamped to 40..200; 80 if standard output is not a terminal.
std::size_t screen_width();

}  // namespace tocsin
