// What the benchmark reports: every figure by name, with its unit, what it is compared with, and its target.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tocsin::bench {

struct Figure {
  enum class Rounds { median, least, most, sum };  // how the values of several rounds become one

  std::string name;   // stable: the key of --json
  std::string title;  // for people
  std::string unit;
  std::string target = {};
  std::string floor = {};  // name of the figure that says what the database alone can do
  Rounds rounds = Rounds::median;
};

struct Section {
  std::string measurement;  // as --only names it
  std::string title;
  std::vector<Figure> figures;
};

// All figures, in the order they are reported. `claimers`: the counts that the drain is measured with.
std::vector<Section> catalog(const std::vector<int>& claimers);

// The values that the rounds gave.
// Thread: owner only.
class Results {
 public:
  void add(const std::string& figure, double value) { values_[figure].push_back(value); }
  const std::map<std::string, std::vector<double>>& values() const { return values_; }

  // nullopt: not measured.
  std::optional<double> of(const Figure& figure) const;

 private:
  std::map<std::string, std::vector<double>> values_;
};

// REQUIRES: `sorted` is; 0 when it is empty.
double quantile(const std::vector<double>& sorted, double q);

}  // namespace tocsin::bench
