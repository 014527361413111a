// The figures that the bench reports: name, unit, the figure to compare with, and target. Results: their measured
// values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tocsin::bench {

// One measured quantity.
struct Figure {
  enum class Rounds { median, least, most, sum };  // how the values of several rounds become one

  std::string name;   // stable: the key of --json
  std::string title;  // human-readable
  std::string unit;
  std::string target = {};
  std::string floor = {};  // name of the figure that shows what the database alone can do
  Rounds rounds = Rounds::median;
};

struct Section {
  std::string measurement;  // as --only names it
  std::string title;
  std::vector<Figure> figures;
};

// What a caller of the bench may vary.
struct Variants {
  std::vector<int> claimers;        // numbers of claimers for the measurement drain
  std::vector<std::size_t> depths;  // numbers of waiting jobs; the first is the base of comparison
};

// All figures, in the order they are reported.
std::vector<Section> catalog(const Variants& variants);

// One point of a series: values by name, such as {start_s, 30}.
using Point = std::vector<std::pair<std::string, double>>;

// The values of all rounds, and the series. Thread: owner only.
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

// REQUIRES: `sorted` is sorted. 0 if it is empty.
double quantile(const std::vector<double>& sorted, double q);
// 0 if there are no values.
double median(std::vector<double> values);

}  // namespace tocsin::bench
