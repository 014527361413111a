// The numbered SQL files of migrations/, compiled into the binary (tocsin_embed in CMakeLists.txt generates the .cc).
// migrate() applies them (postgres/migrator.h).
#pragma once

#include <string>
#include <vector>

namespace tocsin {

struct Migration {
  int version = 0;
  std::string name;  // of the file: "0001_baseline"
  std::string sql;
};

// In order of version, from 1, without gaps. Thread: any.
const std::vector<Migration>& migrations();

}  // namespace tocsin
