// Durations, safe text and tables.
#include "base/text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/duration.h"
#include "cli/print.h"
#include "cli/table.h"

namespace tocsin {
namespace {

using std::chrono::milliseconds;

TEST(Duration, ReadsHumanReadableDurations) {
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("15s"), milliseconds(15'000));
  EXPECT_EQ(parse_duration("15m"), milliseconds(900'000));
  EXPECT_EQ(parse_duration("24h"), milliseconds(86'400'000));
  EXPECT_EQ(parse_duration("7d"), milliseconds(604'800'000));
  EXPECT_EQ(parse_duration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("0s"), milliseconds(0));
}

TEST(Duration, RefusesEverythingElse) {
  for (const char* bad : {"", "15", "m", "-1s", "+1s", "1.5h", "15 m", "1y", "15M", "1h30", "99999999999999999999s",
                          "9223372036854775807d", "40000d"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Duration, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(format_duration(0), "0ms");
  EXPECT_EQ(format_duration(12.34), "12.3ms");
  EXPECT_EQ(format_duration(250), "250ms");
  EXPECT_EQ(format_duration(4'200), "4.2s");
  EXPECT_EQ(format_duration(30'000), "30s");
  EXPECT_EQ(format_duration(899'000), "14m 59s");
  EXPECT_EQ(format_duration(3'600'000), "1h");
  EXPECT_EQ(format_duration(26 * 3'600'000.0 + 59'000), "1d 2h");
}

TEST(OneLine, JoinsTheLinesOfAMessage) {
  EXPECT_EQ(one_line("could not connect\n\tIs the server running?\r\n"), "could not connect Is the server running?");
  EXPECT_EQ(one_line(" \n"), "");
}

TEST(Printable, EscapesWhatCouldMoveTheCursorOrForgeALine) {
  EXPECT_EQ(printable("a\x1b[31mb\r\n\t\x7f"), "a\\x1b[31mb\\r\\n\\t\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\x9b");                // a one-byte CSI
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\u202e");          // right-to-left override
  EXPECT_EQ(printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");  // not UTF-8
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("Zoë 注文 😀"), "Zoë 注文 😀");
}

TEST(Printable, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width("Zoë"), 3u);
  EXPECT_EQ(display_width("注文"), 4u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(display_width("😀"), 2u);
}

TEST(Printable, ClipNeverCutsACharacter) {
  EXPECT_EQ(clip("abcdef", 6), "abcdef");
  EXPECT_EQ(clip("abcdefg", 6), "abcde…");
  EXPECT_EQ(clip("注文注文", 4), "注…");
  EXPECT_EQ(clip("abc", 0), "");
}

std::vector<std::string> lines_of(const Table& table, std::size_t width) {
  std::ostringstream out;
  table.print(out, width);
  std::istringstream in(out.str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Table, AlignsItsColumns) {
  Table table({{"N", Column::Align::right}, {"NAME"}, {"STATE"}});
  table.add({"1", "注文", "ok"});
  table.add({"200", "order", "ok"});
  EXPECT_EQ(lines_of(table, 80), (std::vector<std::string>{"  N  NAME   STATE", "  1  注文   ok", "200  order  ok"}));
}

TEST(Table, ShrinksTheWidestShrinkableColumn) {
  Table table({{"JOB"}, {"TYPE", Column::Align::left, true}, {"KEY", Column::Align::left, true}});
  table.add({"1234567890123456789", std::string(20, 't'), std::string(128, 'k')});
  const auto lines = lines_of(table, 80);
  EXPECT_EQ(display_width(lines[1]), 80u);
  EXPECT_NE(lines[1].find("1234567890123456789  " + std::string(20, 't') + "  k"), std::string::npos) << lines[1];
  EXPECT_TRUE(lines[1].ends_with("k…"));
}

TEST(Table, FitsEvenWhenNoColumnMayShrink) {
  Table table({{"A"}, {"B"}});
  table.add({std::string(60, 'a'), std::string(60, 'b')});
  for (const std::string& line : lines_of(table, 80)) EXPECT_LE(display_width(line), 80u);
}

TEST(Table, CellsAreMadePrintable) {
  Table table({{"A"}});
  table.add({"x\x1b]0;owned\x07"});
  EXPECT_EQ(lines_of(table, 80)[1], "x\\x1b]0;owned\\x07");
}

TEST(Record, LeavesOutNullsAndShowsDurationsAndNestedNames) {
  std::ostringstream out;
  print_record(
      out,
      Json::parse(
          R"({"job_id":"7","node":null,"lateness_ms":12.5,"handler":{"kind":"noop"},"attribute":{"a":"\u001b"}})"),
      80);
  EXPECT_EQ(out.str(),
            "  job id        7\n"
            "  lateness      12.5ms\n"
            "  handler kind  noop\n"
            "  attribute     {\"a\":\"\\u001b\"}\n");
}

TEST(Record, WrapsLongValuesAndPutsListsUnderneath) {
  std::ostringstream out;
  Json record = {{"why", "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"},
                 {"errors", {{{"attempt", 1}, {"message", "bad\x1b"}}}}};
  print_record(out, record, 40);
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) EXPECT_LE(display_width(line), 40u) << line;
  EXPECT_NE(out.str().find("errors\n  attempt 1\n    bad\\x1b\n"), std::string::npos) << out.str();
}

TEST(Record, ATimeSaysHowFarAwayItIs) {
  EXPECT_EQ(readable_time("2026-03-01T12:00:00.250Z", false), "2026-03-01 12:00:00.250Z");
  EXPECT_EQ(readable_time("2026-03-01T12:00:00.250999Z", false), "2026-03-01 12:00:00.250Z");
  EXPECT_NE(readable_time("2001-03-01T12:00:00Z", true).find("ago)"), std::string::npos);
  EXPECT_NE(readable_time("2070-03-01T12:00:00Z", true).find("(in "), std::string::npos);
  EXPECT_EQ(readable_time("tomorrow", true), "tomorrow");
}

TEST(RestPaths, AreEncoded) {
  EXPECT_EQ(path_part("a/b?c d%é"), "a%2Fb%3Fc%20d%25%C3%A9");
  EXPECT_EQ(with_query("/v1/jobs", {{"biz_id", "a&b"}, {"status", ""}, {"limit", "1"}}),
            "/v1/jobs?biz_id=a%26b&limit=1");
}

TEST(Problems, NameTheFieldAtFault) {
  EXPECT_EQ(problem_text(
                RestReply{422, Json::parse(R"({"title":"Bad","detail":"too\u001b long","field":"biz_id"})"), {}, {}}),
            "too\\x1b long (field: biz_id)");
  EXPECT_EQ(problem_text(RestReply{500, Json(), {}, {}}), "the server answered 500");
}

}  // namespace
}  // namespace tocsin
