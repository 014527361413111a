// The figures for people, for a document, and for programs.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/machine.h"

namespace tocsin::bench {

struct Report {
  const Machine& machine;
  const std::vector<Section>& sections;
  const Results& results;
  int rounds = 0;
  bool is_quick = false;
};

// Sections and figures that were not measured are left out of the first two.
void print_table(std::ostream& out, const Report& report);
void print_markdown(std::ostream& out, const Report& report);
// Every value of every round. Throws Failure when the file cannot be written.
void write_json(const std::string& path, const Report& report);

}  // namespace tocsin::bench
