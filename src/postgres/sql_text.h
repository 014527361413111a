// The SQL statements of src/postgres/sql/, compiled into the binary. The stores of src/postgres get the text of each
// from statement(). Thread: any.
//
// A file of sql/ holds one statement, a file of sql/parts/ a piece that several statements share. The comment at its
// head says what it does, which index it needs (by the end of the index's name: _id, _due, _biz or _key of a job table)
// and which hazard it avoids. {{x}} stands for the value x if the caller gives one, else for the part sql/parts/x.sql.
// {{x a = 1 | b = j.node}} gives the part x, and the parts in it, the values a and b; these replace the caller's values
// of the same names.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tocsin::sql {

struct File {
  std::string_view name;  // without ending: "claim"; of a part: "parts/is_due"
  std::string_view text;
};

// All files of sql/, parts included, sorted by name. The build generates this function.
std::span<const File> files();

// Names and the SQL text that replaces them; the text may be empty.
using Values = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// The statement of sql/<name>.sql without comments, every {{x}} replaced. Each call builds the text again. Values
// become part of the SQL: text that comes from outside of the program must be a parameter ($1) instead.
// REQUIRES: the file exists, and each {{x}} in it is a value or a part; otherwise the process ends (TOCSIN_ASSERT).
std::string statement(std::string_view name, Values values = {});

// "SET LOCAL <setting> = <value>; ", for statements that are sent together with it.
std::string set_local(std::string_view setting, std::string_view value);

}  // namespace tocsin::sql
