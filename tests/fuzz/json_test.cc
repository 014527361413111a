// The reader of JSON beside another one: what is JSON for one is JSON for the other, and means the same.
#include "api/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/json_builder.h"
#include "fuzz/mutator.h"

namespace tocsin {
namespace {

using nlohmann::json;

const std::vector<std::string> kSeeds = {
    R"({"jobs":[{"biz_type":"order.unpaid","biz_id":"o-1","delay_ms":60000,"attribute":{"n":[1.10,-0.5e3,1e-3]}},{}]})",
    R"({"attribute":"\"é\n\u00e9\ud83d\ude00 \/","a":[true,false,null,{}],"b":{"c":{"d":[[],[0]]}}})",
    R"( { "attribute" : [ 12345678901234567890123 , -9223372036854775808 , 18446744073709551615 ] , "x" : 1 } )",
    "{\"a\":\"\xe2\x82\xac\",\"attribute\":{\"\xf0\x9f\x94\x94\":0.1,\"b\":{}}}",
};
const std::vector<std::string> kJsonSpice = {
    "null",
    "true",
    "-0",
    "1e400",
    "1e-400",
    "0e-20000",
    "1E+2",
    "0.1",
    "01",
    "-",
    "9223372036854775808",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\x",
    "\xff",
    "\xc0\xaf",
    "\xed\xa0\x80",
    std::string(1, '\0'),
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\t",
    "/**/",
    "'",
    "\"attribute\":",
    "\"a\":1,",
    "[[[[[[[[[[",
    "NaN",
    "Infinity",
    "1.",
    ".5",
    "+1",
    "0x1",
    "\xef\xbb\xbf",
    "1e308",
};

bool is_syntax(const Problem& problem) { return problem.detail.starts_with("The body is not JSON"); }

void compare(std::uint64_t seed) {
  Mutator mutator(seed);
  const std::string text = mutator.mutate(mutator.any_of(kSeeds), kJsonSpice);
  const json theirs = json::parse(text, nullptr, /*allow_exceptions=*/false);
  json plain, kept;
  const auto problem = build_json(text, "", plain);
  const auto kept_problem = build_json(text, "attribute", kept);
  const std::string what = "seed " + std::to_string(seed) + ": " + text;
  if (theirs.is_discarded()) {
    ASSERT_TRUE(problem && kept_problem) << what;
    return;
  }
  // What is refused all the same is refused by a rule of ours; but the other skips a mark at the beginning, and takes a
  // NUL for the end.
  const bool is_let_pass = text.starts_with("\xef\xbb\xbf") || text.find('\0') != text.npos;
  for (const auto* refused : {&problem, &kept_problem}) {
    if (*refused) {
      ASSERT_TRUE(is_let_pass || !is_syntax(**refused)) << what << '\n' << (*refused)->detail;
    }
  }
  if (!problem) {
    ASSERT_EQ(plain, theirs) << what;
  }
  if (kept_problem || !kept.is_object() || !kept.contains("attribute")) return;
  const json& attribute = kept["attribute"];
  ASSERT_TRUE(attribute.is_string()) << what;
  ASSERT_EQ(json::parse(attribute.get_ref<const std::string&>()), theirs["attribute"]) << what;
}

TEST(JsonFuzz, AgreesWithAnotherParser) {
  const auto [first, last] = fuzz_seeds(200'000);
  for (std::uint64_t seed = first; seed <= last && !HasFatalFailure(); ++seed) compare(seed);
}

}  // namespace
}  // namespace tocsin
