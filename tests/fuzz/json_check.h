// What must hold of the reader of JSON, whatever text it reads: what is JSON for another parser is JSON for it, and
// means the same.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/json_builder.h"

namespace tocsin {

inline const std::vector<std::string> kJsonSeeds = {
    R"({"jobs":[{"biz_type":"order.unpaid","biz_id":"o-1","delay_ms":60000,"attribute":{"n":[1.10,-0.5e3,1e-3]}},{}]})",
    R"({"attribute":"\"é\n\u00e9\ud83d\ude00 \/","a":[true,false,null,{}],"b":{"c":{"d":[[],[0]]}}})",
    R"( { "attribute" : [ 12345678901234567890123 , -9223372036854775808 , 18446744073709551615 ] , "x" : 1 } )",
    "{\"a\":\"\xe2\x82\xac\",\"attribute\":{\"\xf0\x9f\x94\x94\":0.1,\"b\":{}}}",
};
inline const std::vector<std::string> kJsonSpice = {
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

inline bool is_syntax_problem(const Problem& problem) { return problem.detail.starts_with("The body is not JSON"); }

// Fails unless both parsers take `text` for JSON of the same meaning, or a rule of Tocsin refuses it. `origin`: of the
// text, for messages.
inline void check_json(const std::string& text, const std::string& origin) {
  using nlohmann::json;
  const json theirs = json::parse(text, nullptr, /*allow_exceptions=*/false);
  json plain, kept;
  const auto problem = build_json(text, "", plain);
  const auto kept_problem = build_json(text, "attribute", kept);
  const std::string what = origin + ": " + text;
  if (theirs.is_discarded()) {
    ASSERT_TRUE(problem && kept_problem) << what;
    return;
  }
  // What is refused all the same is refused by a rule of ours; but the other skips a mark at the beginning, and takes a
  // NUL for the end.
  const bool is_let_pass = text.starts_with("\xef\xbb\xbf") || text.find('\0') != text.npos;
  for (const auto* refused : {&problem, &kept_problem}) {
    if (*refused) {
      ASSERT_TRUE(is_let_pass || !is_syntax_problem(**refused)) << what << '\n' << (*refused)->detail;
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

}  // namespace tocsin
