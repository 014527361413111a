#include "api/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/json_writer.h"
#include "support/api_fixture.h"

namespace tocsin {
namespace {

std::string nested(int depth) {
  return "{\"a\":" + std::string(static_cast<std::size_t>(depth - 1), '[') +
         std::string(static_cast<std::size_t>(depth - 1), ']') + "}";
}

std::string deep_path(int lists) {
  std::string path = "a";
  for (int i = 0; i < lists; ++i) path += "[0]";
  return path;
}

struct Bad {
  const char* name;
  std::string text;
  std::string field;
};

class StrictJson : public testing::TestWithParam<Bad> {};

TEST_P(StrictJson, RefusesAndNamesTheField) {
  for (const char* verbatim : {"", "attribute"}) {
    JsonDocument document(GetParam().text, verbatim);
    JsonObject root = document.root();
    ASSERT_TRUE(document.problem()) << GetParam().text;
    EXPECT_EQ(document.problem()->status, 400);
    EXPECT_EQ(document.problem()->field, GetParam().field);
    EXPECT_FALSE(root.has("a"));
    EXPECT_TRUE(nlohmann::json::accept(problem_text(*document.problem())));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, StrictJson,
    testing::Values(
        Bad{"Empty", "", ""}, Bad{"NotJson", "hello", ""}, Bad{"Unfinished", R"({"a":1)", ""},
        Bad{"TrailingText", R"({"a":1}x)", ""}, Bad{"SecondDocument", R"({"a":1}{})", ""},
        Bad{"TrailingComma", R"({"a":1,})", ""}, Bad{"Comment", R"({"a":1/*x*/})", ""},
        Bad{"SingleQuotes", "{'a':1}", ""}, Bad{"NaN", R"({"a":NaN})", ""}, Bad{"Hex", R"({"a":0x10})", ""},
        Bad{"LeadingZero", R"({"a":01})", ""}, Bad{"NotAnObject", "[1]", ""}, Bad{"JustNull", "null", ""},
        Bad{"RepeatedKey", R"({"a":1,"a":2})", "a"}, Bad{"RepeatedKeyByEscape", R"({"a":1,"\u0061":2})", "a"},
        Bad{"RepeatedKeyInside", R"({"a":{"b":1,"b":2}})", "a.b"},
        Bad{"RepeatedKeyInList", R"({"a":[{},{"b":1,"b":2}]})", "a[1].b"},
        Bad{"RepeatedKeyInAttribute", R"({"attribute":1,"attribute":2})", "attribute"},
        Bad{"NulInText", R"({"a":"x\u0000y"})", "a"},
        Bad{"NulInKey", R"({"a":{"x\u0000":1}})", std::string("a.x\0", 4)}, Bad{"RawControl", "{\"a\":\"x\ny\"}", ""},
        Bad{"LoneHighSurrogate", R"({"a":"\ud800"})", "a"}, Bad{"LoneLowSurrogate", R"({"a":[0,"\\\uDC00"]})", "a[1]"},
        Bad{"LeadingSurrogateTwice", R"({"a":"\ud83d\ud83d\ude00"})", "a"},
        Bad{"SurrogatesInWrongOrder", R"({"a":"\ude00\ud83d, and what follows"})", "a"},
        Bad{"LoneSurrogateInKey", R"({"a":{"\uDBFFx":1}})", std::string("a.\0x", 4)},
        Bad{"SurrogateOfThreeDigits", R"({"a":"\ud80x"})", ""}, Bad{"PairOfThreeDigits", R"({"a":"\ud83d\ude0x"})", ""},
        Bad{"InvalidUtf8", "{\"a\":\"\xC3\x28\"}", ""}, Bad{"OverlongUtf8", "{\"a\":\"\xC0\xAF\"}", ""},
        Bad{"SurrogateInUtf8", "{\"a\":\"\xED\xA0\x80\"}", ""}, Bad{"HugeNumber", R"({"a":1e400})", "a"},
        Bad{"HugeNegative", R"({"a":[0,-1e999]})", "a[1]"},
        Bad{"HugeExponent", R"({"a":[1e99999999999999999999]})", "a[0]"}, Bad{"TinyNumber", R"({"a":1e-400})", "a"},
        Bad{"LongNumber", R"({"a":0.)" + std::string(500, '1') + "}", "a"}, Bad{"TooDeep", nested(33), deep_path(31)}),
    [](const auto& test) { return test.param.name; });

// PostgreSQL gives numbers back in full: a few bytes would be hundreds in every reply.
TEST(StrictJson, BoundsTheLengthOfVerbatimNumbers) {
  const auto problem = [](int numbers) {
    std::string text = R"({"attribute":[1)";
    for (int i = 0; i < numbers; ++i) text += i % 2 ? ",1e308" : ",-2.5E-300";
    JsonDocument document(text + R"(],"other":1e308})", "attribute");
    return document.problem();
  };
  EXPECT_FALSE(problem(200));
  ASSERT_TRUE(problem(300));
  EXPECT_EQ(problem(300)->field, "attribute");
}

// The limits are those of PostgreSQL's numeric.
TEST(StrictJson, RefusesVerbatimZerosThatTheDatabaseRefuses) {
  const auto field = [](const std::string& number) {
    JsonDocument document(R"({"attribute":{"x":)" + number + "}}", "attribute");
    return document.problem() ? document.problem()->field : "none";
  };
  for (const char* taken : {"0e-16383", "0.0e-16382", "0E+20000", "0e-00016383", "-0.00e-16381", "0.5", "0.5e-300"})
    EXPECT_EQ(field(taken), "none") << taken;
  for (const char* refused : {"0e-16384", "0.0e-16383", "-0e-20000", "0.000E-16381"})
    EXPECT_EQ(field(refused), "attribute") << refused;
}

TEST(StrictJson, TakesNestingUpToTheLimit) {
  JsonDocument document(nested(32));
  EXPECT_TRUE(document.root().ok());
}

TEST(StrictJson, SurvivesNestingOfAHundredThousand) {
  JsonDocument document("{\"attribute\":" + std::string(100000, '['), "attribute");
  ASSERT_TRUE(document.problem());
  EXPECT_EQ(document.problem()->field, "attribute");
}

TEST(StrictJson, BoundsTheNumberOfValues) {
  std::string text = "{\"jobs\":[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) text += ",[]";
  JsonDocument document(text + "]}");
  ASSERT_TRUE(document.problem());
  EXPECT_TRUE(document.problem()->field.starts_with("jobs["));
}

TEST(VerbatimField, KeepsNumbersAsWritten) {
  const std::string value = R"({"a":[1.10,12345678901234567890123,-0.5e3,true,null],"b":"\"é\n","c":{}})";
  JsonDocument document(R"({"x":1, "attribute": )" + value + R"(, "y":2})", "attribute");
  JsonObject root = document.root();
  EXPECT_EQ(root.verbatim_text("attribute"), value);
  EXPECT_EQ(root.integer("x", {0, 9}), 1);
  EXPECT_EQ(root.integer("y", {0, 9}), 2);
  root.end();
  EXPECT_FALSE(document.problem());
}

TEST(StrictJson, TakesPairsOfSurrogatesAndWhatLooksLikeLoneOnes) {
  const std::string pair = "\xf0\x9f\x98\x80";
  for (const auto& [text, value] : {std::pair<std::string, std::string>(R"(\ud83d\ude00\uD83D\uDE00)", pair + pair),
                                    {R"(\\ud83d)", "\\ud83d"},
                                    {R"(\ue000\ud7ff)", "\xee\x80\x80\xed\x9f\xbf"}}) {
    JsonDocument document(R"({"a":")" + text + "\"}");
    EXPECT_EQ(document.root().string("a", 1, 100), value) << text;
    // And beside a lone one they are not taken for another.
    JsonDocument batch(R"({"jobs":["\ud83d",{"a":")" + text + "\"}]}", "", "jobs");
    auto items = batch.root().objects("jobs", 9, true);
    ASSERT_TRUE(items) << text;
    EXPECT_TRUE(batch.item_problem(0)) << text;
    EXPECT_EQ(items->back().string("a", 1, 100), value) << text;
  }
}

TEST(VerbatimField, MayBeAnyValue) {
  for (const std::string value : {"1", "\"text\"", "true", "[]", "{}", "1.0", "[[{}]]"}) {
    JsonDocument document("{\"attribute\":" + value + "}", "attribute");
    EXPECT_EQ(document.root().verbatim_text("attribute"), value);
  }
}

TEST(VerbatimField, NullIsAbsent) {
  JsonDocument document(R"({"attribute":null})", "attribute");
  EXPECT_EQ(document.root().verbatim_text("attribute"), "");
}

TEST(VerbatimField, RefusesRepeatedKeysInside) {
  JsonDocument document(R"({"jobs":[{"attribute":{"a":{"b":1,"c":2,"b":3}}}]})", "attribute");
  ASSERT_TRUE(document.problem());
  EXPECT_EQ(document.problem()->field, "jobs[0].attribute");
}

TEST(JsonObject, NamesUnknownFields) {
  JsonDocument document(R"({"a":1,"b":{"c":2}})");
  JsonObject root = document.root();
  root.integer("a", {0, 9});
  root.object("b")->end();
  root.end();
  ASSERT_TRUE(document.problem());
  EXPECT_EQ(document.problem()->field, "b.c");
}

TEST(JsonObject, KeepsTheFirstMistake) {
  JsonDocument document(R"({"a":"x","b":"y"})");
  JsonObject root = document.root();
  EXPECT_EQ(root.integer("a", {0, 9}), std::nullopt);
  EXPECT_EQ(root.integer("b", {0, 9}), std::nullopt);
  EXPECT_EQ(document.problem()->field, "a");
}

TEST(JsonObject, ChecksTypesAndRanges) {
  const auto fails = [](const std::string& value, auto read) {
    JsonDocument document("{\"a\":" + value + "}");
    JsonObject root = document.root();
    read(root);
    return document.problem().has_value() && document.problem()->field.starts_with("a");
  };
  const auto integer = [](JsonObject& in) { in.integer("a", {1, 1000}); };
  for (const char* bad : {"0", "1001", "-1", "1.0", "1e2", "\"5\"", "true", "[]", "{}", "18446744073709551615"})
    EXPECT_TRUE(fails(bad, integer)) << bad;
  for (const char* good : {"1", "1000", "null"}) EXPECT_FALSE(fails(good, integer)) << good;
  const auto text = [](JsonObject& in) { in.string("a", 1, 3); };
  for (const char* bad : {"\"\"", "\"abcd\"", "\"\u00e9\u00e9\"", "1", "[]"}) EXPECT_TRUE(fails(bad, text)) << bad;
  for (const char* good : {"\"a\"", "\"abc\"", "null"}) EXPECT_FALSE(fails(good, text)) << good;
  const auto key = [](JsonObject& in) { in.string_or_number("a", 1, 128); };
  for (const char* bad : {"\"\"", "-1", "1.5", "18446744073709551616", "true", "{}"})
    EXPECT_TRUE(fails(bad, key)) << bad;
  for (const char* good : {"0", "18446744073709551615", "\"x\""}) EXPECT_FALSE(fails(good, key)) << good;
  const auto number = [](JsonObject& in) { in.number("a", 0.5, 2); };
  for (const char* bad : {"0.4", "3", "\"1\"", "true"}) EXPECT_TRUE(fails(bad, number)) << bad;
  for (const char* good : {"1", "0.5", "2.0"}) EXPECT_FALSE(fails(good, number)) << good;
  const auto list = [](JsonObject& in) { in.integers("a", 2, {0, 9}); };
  for (const char* bad : {"[1,2,3]", "[1,10]", "[\"1\"]", "{}", "1"}) EXPECT_TRUE(fails(bad, list)) << bad;
  const auto time = [](JsonObject& in) { in.time("a"); };
  for (const char* bad : {"\"2026-03-01\"", "\"2026-03-01T12:00:00\"", "1772366400", "\"\""})
    EXPECT_TRUE(fails(bad, time)) << bad;
}

TEST(JsonWriter, EscapesLikeTheLibrary) {
  std::string all;
  for (int c = 1; c < 128; ++c) all += static_cast<char>(c);
  all += "\u00e9\u20ac\U0001F514";
  std::string mine;
  append_json_string(mine, all);
  EXPECT_EQ(mine, nlohmann::json(all).dump());
}

TEST(JsonWriter, MakesValidTextOfAnyBytes) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string bytes{static_cast<char>(first), static_cast<char>(second), 'x'};
      std::string text;
      append_json_string(text, bytes);
      ASSERT_TRUE(nlohmann::json::accept(text)) << first << ' ' << second;
    }
  }
}

TEST(JsonWriter, PutsCommas) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("a", 1).key("b").begin_array().value("x").begin_object().end_object().null().end_array();
  out.field("c", std::optional<std::string>()).field("d", 0.1).members(R"("e":true)").end_object();
  EXPECT_EQ(text, R"({"a":1,"b":["x",{},null],"c":null,"d":0.1,"e":true})");
}

// ---- batches: a mistake in the text of one item

using Batch = ApiTest;

std::string jobs_of(const std::vector<std::string>& items) {
  std::string body = "{\"jobs\":[";
  for (const std::string& item : items) body += (body.back() == '[' ? "" : ",") + item;
  return body + "]}";
}

TEST_F(Batch, PartialRefusesOnlyTheItemWithAMistakeInItsText) {
  const auto with = [](const std::string& more) {
    return R"({"biz_type":"order.unpaid","biz_id":"x","delay_ms":1)" + more + "}";
  };
  const std::vector<std::pair<std::string, std::string>> bad = {
      {with(R"(,"attribute":{"a":"\u0000"})"), "jobs[0].attribute"},
      {with(R"(,"attribute":{"a":[1,{"b\u0000":2}]})"), "jobs[0].attribute"},
      {with(R"(,"attribute":{"a":1,"a":2})"), "jobs[0].attribute"},
      {with(R"(,"attribute":[{"a":1,"a":{"c":[1]}},{"b":[1,2]}])"), "jobs[0].attribute"},
      {with(R"(,"biz_id":"y")"), "jobs[0].biz_id"},
      {with(R"(,"max_attempts":1e999)"), "jobs[0].max_attempts"},
      {with(R"(,"attribute":1e999)"), "jobs[0].attribute"},
      {with(R"(,"attribute":1e99999999999)"), "jobs[0].attribute"},
      {with(R"(,"attribute":{"e9":"\\\"1e99999999999","b":[1,-2.5E+99999999999]})"), "jobs[0].attribute"},
      {with(R"(,"max_attempts":1e-99999999999)"), "jobs[0].max_attempts"},
      {with(R"(,"attribute":)" + std::string(40, '[') + std::string(40, ']')), "jobs[0].attribute"},
      {"5", "jobs[0]"},
      {"1e999", "jobs[0]"},
      {"-1e99999999999", "jobs[0]"},
      {R"("\u0000")", "jobs[0]"},
      {with(R"(,"attribute":"\ud83d")"), "jobs[0].attribute"},
      {with(R"(,"attribute":{"x":["\ude00"]})"), "jobs[0].attribute"},
      {with(R"(,"idempotency_key":"\uD83D \uDE00")"), "jobs[0].idempotency_key"},
      {R"({"\ud83d":1})", std::string("jobs[0].\0", 9)},
      {R"("\ud83d")", "jobs[0]"},
      {"[[1]]", "jobs[0]"},
      {"null", "jobs[0]"},
  };
  int n = 0;
  for (const auto& [text, field] : bad) {
    const std::string next = with(R"(,"idempotency_key":")" + std::to_string(++n) + '"');
    const Answer answer = post("/v1/jobs/batch?partial=true", jobs_of({text, next, text}));
    ASSERT_EQ(answer.status, 201) << text << ": " << answer.text;
    const Json& items = answer.body.at("items");
    ASSERT_EQ(items.size(), 3u) << text;
    EXPECT_EQ(items[0].at("error").at("status"), 400) << text;
    EXPECT_EQ(items[0].at("error").value("field", std::string()), field) << text;
    EXPECT_EQ(items[1].value("created", false), true) << text << ": " << answer.text;
    EXPECT_TRUE(items[2].contains("error")) << text;
    EXPECT_EQ(post("/v1/jobs/batch", jobs_of({text, next})).status, 400) << text;
  }
  const std::string zeros = with(R"(,"attribute":[1e000005,1E-00000,1e+00000])");
  const Answer kept = post("/v1/jobs/batch?partial=true", jobs_of({with(R"(,"attribute":1e99999999999)"), zeros}));
  EXPECT_EQ(kept.body.at("items")[1].value("created", false), true) << kept.text;
  const Answer both = post("/v1/jobs/batch?partial=true",
                           jobs_of({with(R"(,"attribute":"\ud83d")"), zeros, with(R"(,"attribute":1e99999999999)")}));
  EXPECT_EQ(both.body.at("items")[1].value("created", false), true) << both.text;
  EXPECT_EQ(backend.database.live().size(), bad.size() + 2);
  EXPECT_EQ(post("/v1/jobs/batch?partial=true", R"({"jobs":[{]})").status, 400);
  EXPECT_EQ(post("/v1/jobs/batch?partial=true", R"({"x":1,"x":2,"jobs":[]})").status, 400);
}

TEST(Problem, IsProblemJson) {
  const HttpResponse response = problem_response({429, "Slow \"down\".", "jobs[3].biz_id", 1, R"("job_id":"7")"});
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_EQ(
      response.body,
      R"({"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Slow \"down\".","field":"jobs[3].biz_id","job_id":"7"})");
  EXPECT_EQ(response.headers, (std::vector<std::pair<std::string, std::string>>{{"Retry-After", "1"}}));
}

}  // namespace
}  // namespace tocsin
