#include "api/dashboard.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/digest.h"
#include "support/http_server_fixture.h"

namespace tocsin {
namespace {

constexpr std::size_t kBudget = 120'000;  // bytes of all files together, gzipped

std::string header_of(const HttpResponse& response, const std::string& name) {
  for (const auto& [key, value] : response.headers)
    if (key == name) return value;
  return "";
}

class DashboardTest : public testing::Test {
 public:
  HttpResponse get(const std::string& target, HttpRequest request = {}) {
    request.method = request.method.empty() ? "GET" : request.method;
    request.target = target;
    Admission admission = dashboard.admit(request);
    if (admission.refusal) return *admission.refusal;
    HttpResponse response;
    admission.run(request, Responder([&](HttpResponse r) { response = std::move(r); }));
    return response;
  }

  EchoApp next;
  Dashboard dashboard{next};
};

TEST_F(DashboardTest, ServesThePageWithARelativeAndImmutableFolder) {
  const HttpResponse page = get("/?screen=jobs&biz_id=a");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(page.cache_control, "no-cache");
  EXPECT_EQ(page.body.find("{{"), std::string::npos);
  const std::size_t at = page.body.find("src=\"assets/");
  ASSERT_NE(at, std::string::npos);
  const std::string path = '/' + page.body.substr(at + 5, page.body.find('"', at + 5) - at - 5);
  const HttpResponse script = get(path);
  EXPECT_EQ(script.status, 200);
  EXPECT_EQ(script.content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(script.cache_control, "public, max-age=31536000, immutable");
}

TEST_F(DashboardTest, AllowsNothingFromElsewhere) {
  for (const DashboardFile& file : dashboard_files()) {
    const HttpResponse response = get(std::string(file.path));
    const std::string policy = header_of(response, "Content-Security-Policy");
    EXPECT_EQ(policy,
              "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
        << file.name;
    EXPECT_EQ(header_of(response, "Referrer-Policy"), "no-referrer");
    EXPECT_EQ(header_of(response, "Cross-Origin-Opener-Policy"), "same-origin");
  }
}

// What is in sessionStorage ends with the tab. localStorage has settings, and a cookie would go out with every request.
TEST_F(DashboardTest, KeepsTheTokenInItsTabOnly) {
  const auto has = [](std::string_view text, std::string_view part) { return text.find(part) != text.npos; };
  bool is_kept = false;
  for (const DashboardFile& file : dashboard_files()) {
    is_kept = is_kept || has(file.plain, "sessionStorage.setItem('tocsin.token'");
    for (const char* elsewhere : {"document.cookie", "cookieStore", "indexedDB", "localStorage.setItem('tocsin.token'",
                                  "setting('token'", "setting(\"token\""})
      EXPECT_FALSE(has(file.plain, elsewhere)) << file.name << ": " << elsewhere;
  }
  EXPECT_TRUE(is_kept);
}

TEST_F(DashboardTest, CompressesOnlyWhenAccepted) {
  HttpRequest asks;
  asks.accept_encoding = "br, gzip;q=0.8";
  const HttpResponse small = get("/", asks);
  EXPECT_EQ(header_of(small, "Content-Encoding"), "gzip");
  EXPECT_EQ(small.body.substr(0, 2), "\x1f\x8b");
  asks.accept_encoding = "gzip;q=0, identity";
  EXPECT_EQ(header_of(get("/", asks), "Content-Encoding"), "");
  EXPECT_TRUE(get("/").body.starts_with("<!doctype html>"));
}

TEST_F(DashboardTest, AnswersNotModifiedForCachedFiles) {
  HttpRequest again;
  again.if_none_match = "\"other\", W/" + header_of(get("/"), "ETag");
  EXPECT_EQ(get("/", again).status, 304);
  EXPECT_EQ(get("/", again).body, "");
  again.if_none_match = "\"other\"";
  EXPECT_EQ(get("/", again).status, 200);
}

TEST_F(DashboardTest, PassesOtherPathsToTheApi) {
  EXPECT_EQ(get("/refused").status, 401);
  EXPECT_EQ(get("/assets/../../etc/passwd").body, "GET /assets/../../etc/passwd ");
  HttpRequest post;
  post.method = "POST";
  EXPECT_EQ(get("/", post).body, "POST / ");
}

TEST_F(DashboardTest, StaysWithinItsBudget) {
  std::size_t size = 0;
  for (const DashboardFile& file : dashboard_files()) size += file.gzip.size();
  EXPECT_LE(size, kBudget);
  EXPECT_GT(size, 20'000U);
}

// What others have written is exactly what they have published.
TEST_F(DashboardTest, HoldsVendoredFilesByTheirChecksums) {
  const std::filesystem::path folder = std::filesystem::path(TOCSIN_DASHBOARD_DIR) / "vendor";
  std::ifstream sums(folder / "SHA256SUMS");
  std::set<std::string> listed;
  for (std::string digest, name; sums >> digest >> name;) {
    std::ifstream file(folder / name, std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    EXPECT_EQ(sha256_hex(content.str()), digest) << name;
    listed.insert(name);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_TRUE(entry.path().filename() == "SHA256SUMS" || listed.contains(entry.path().filename().string()))
        << entry.path();
  EXPECT_GE(listed.size(), 4U);
}

// The length of a 304 would be that of the 200: none is stated, and the connection stays open.
TEST_F(HttpServerTest, ANotModifiedAnswerHasNoLength) {
  struct App : HttpApp {
    Admission admit(const HttpRequest&) override {
      Admission admission;
      admission.run = [](const HttpRequest& request, const Responder& respond) {
        respond({request.if_none_match == "\"a\"" ? 304 : 200, "text/plain", "", {}});
      };
      return admission;
    }
  } not_modified;
  HttpServer own(not_modified, {});
  ASSERT_TRUE(own.start());
  RawClient client(own.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\nIf-None-Match: \"a\"\r\n\r\n");
  const std::string first = client.response(false);
  EXPECT_TRUE(first.starts_with("HTTP/1.1 304 Not Modified\r\n")) << first;
  EXPECT_EQ(first.find("Content-Length"), std::string::npos);
  client.send(kGet);
  EXPECT_EQ(client.status(), 200);
}

}  // namespace
}  // namespace tocsin
