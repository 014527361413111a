#include "postgres/conninfo.h"

#include <libpq-fe.h>

#include <memory>

namespace tocsin {
namespace {

using Options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

Result<Options> parsed(const std::string& url) {
  char* message = nullptr;
  Options options(PQconninfoParse(url.c_str(), &message), &PQconninfoFree);
  const std::unique_ptr<char, decltype(&PQfreemem)> held(message, &PQfreemem);
  // libpq's message may repeat the text, password included.
  if (!options) return Error{ErrorCode::invalid, "it is no connection string", ""};
  return options;
}

bool is_password(const std::string& keyword) { return keyword == "password" || keyword == "sslpassword"; }

void add_pair(std::string& text, const std::string& keyword, const std::string& value) {
  text += (text.empty() ? "" : " ") + keyword + "='";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  text += '\'';
}

}  // namespace

Result<bool> has_password(const std::string& url) {
  const auto options = parsed(url);
  if (!options) return options.error();
  for (const PQconninfoOption* each = options->get(); each->keyword != nullptr; ++each)
    if (is_password(each->keyword) && each->val != nullptr) return true;
  return false;
}

Result<std::string> without_password(const std::string& url, const std::string& passfile) {
  const auto options = parsed(url);
  if (!options) return options.error();
  std::string text;
  for (const PQconninfoOption* each = options->get(); each->keyword != nullptr; ++each) {
    const std::string keyword = each->keyword;
    const bool is_replaced = keyword == "passfile" && !passfile.empty();
    if (each->val != nullptr && !is_password(keyword) && !is_replaced) add_pair(text, keyword, each->val);
  }
  if (!passfile.empty()) add_pair(text, "passfile", passfile);
  return text;
}

}  // namespace tocsin
