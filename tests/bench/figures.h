// What the benchmark reports: every figure by name, with its unit, what it is compared with, and its target.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
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

// What a run may vary.
struct Variants {
  std::vector<int> claimers;        // that the drain is measured with
  std::vector<std::size_t> depths;  // jobs that wait while others are measured; the first is what the others are
                                    // compared with
};

// All figures, in the order they are reported.
std::vector<Section> catalog(const Variants& variants);

// One line of a series: what was observed at one point, by name.
using Point = std::vector<std::pair<std::string, double>>;

// The values that the rounds gave, and what was observed on the way.
// Thread: owner only.
class Results {
 public:
  void add(const std::string& figure, double value) { values_[figure].push_back(value); }
  void add_point(const std::string& series, Point point) { points_.emplace_back(series, std::move(point)); }
  const std::map<std::string, std::vector<double>>& values() const { return values_; }
  const std::vector<std::pair<std::string, Point>>& points() const { return points_; }

  // nullopt: not measured.
  std::optional<double> of(const Figure& figure) const;

 private:
  std::map<std::string, std::vector<double>> values_;
  std::vector<std::pair<std::string, Point>> points_;  // in the order they were observed
};

// REQUIRES: `sorted` is; 0 when it is empty.
double quantile(const std::vector<double>& sorted, double q);
// 0 when there are none.
double median(std::vector<double> values);

}  // namespace tocsin::bench
