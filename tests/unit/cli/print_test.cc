#include "cli/print.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "base/text.h"

namespace tocsin {
namespace {

std::string printed(const Json& items, std::size_t width) {
  std::ostringstream out;
  print_objects(out, items, width);
  return out.str();
}

TEST(PrintObjects, AreATableWhereItFits) {
  const Json items = Json::parse(R"([{"biz_type":"a","n":1,"dead":2},{"biz_type":"order.unpaid","n":30,"dead":4}])");
  EXPECT_EQ(std::ranges::count(printed(items, 80), '\n'), 3);
}

TEST(PrintObjects, ShowEveryValueWhereNoTableFits) {
  Json item{{"slot", "2026-03-01T12:00:00Z"}, {"biz_type", "order.unpaid"}, {"reason", nullptr}};
  for (int i = 0; i < 12; ++i) item["figure_" + std::to_string(i)] = 1000 + i;
  const std::string text = printed(Json::array({item, item}), 60);
  EXPECT_NE(text.find("order.unpaid"), std::string::npos);
  for (int i = 0; i < 12; ++i) EXPECT_NE(text.find(std::to_string(1000 + i)), std::string::npos) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 60U) << line;
}

}  // namespace
}  // namespace tocsin
