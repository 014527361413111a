// Program: the `tocsin` binary that is measured, and how many nodes of it.
#pragma once

#include <string>
#include <utility>

namespace tocsin::bench {

struct Program {
  // Implicit: most measurements start one node.
  Program(std::string file, int count = 1) : path(std::move(file)), nodes(count) {}
  std::string path;
  int nodes;  // nodes on the database of a Subject
};

}  // namespace tocsin::bench
