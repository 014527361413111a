// The statements of src/postgres/sql/, compiled into the binary.
//
// Each file holds one statement. Its comment says what the statement does, which index it needs (_id, _due, _biz, _key:
// the indexes of the job tables whose names end so) and which hazard it avoids. {{name}} stands for a value that the
// caller gives, or for the file sql/parts/name.sql, which several statements share. {{name a = 1 | b = x.y}} gives
// values to the part and to the parts in it. Thread: any.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tocsin::sql {

struct File {
  std::string_view name;  // without folder and ending; "parts/..." for a part
  std::string_view text;
};

// All files of sql/, sorted by name.
std::span<const File> files();

using Values = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// The statement of sql/<name>.sql without comments, every {{x}} replaced. Values are inserted as SQL: never text of a
// user.
// REQUIRES: the file exists, and each {{x}} of it is a value or a part.
std::string statement(std::string_view name, Values values = {});

}  // namespace tocsin::sql
