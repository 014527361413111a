// The rules and dashboards of docs/monitoring: valid, and about metrics and views that exist.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "integration/live_node.h"
#include "support/process.h"
#include "support/server.h"

namespace tocsin {
namespace {

std::filesystem::path docs_folder() {
  return std::filesystem::path(required_env("TOCSIN_POSTGRES_SH")).parent_path().parent_path() / "docs";
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

class Monitoring : public LiveNode {};

TEST_F(Monitoring, TheRulesAreValidAndDoWhatTheirTestsSay) {
  const std::string folder = (docs_folder() / "monitoring").string();
  EXPECT_EQ(std::system(("promtool check rules " + folder + "/tocsin.rules.yml >/dev/null 2>&1").c_str()), 0);
  EXPECT_EQ(std::system(("promtool test rules " + folder + "/tocsin.rules.test.yml >/dev/null 2>&1").c_str()), 0);
}

TEST_F(Monitoring, EveryAlertHasItsSectionInTheRunbook) {
  const std::string runbook = file_text(docs_folder() / "runbook.md");
  const auto alerts = matches(file_text(docs_folder() / "monitoring/tocsin.rules.yml"), "alert: (\\w+)");
  EXPECT_GE(alerts.size(), 10U);
  for (const std::string& alert : alerts) EXPECT_NE(runbook.find("\n## " + alert + "\n"), std::string::npos) << alert;
}

TEST_F(Monitoring, EveryMetricAndViewThatIsNamedExists) {
  put_type("order.unpaid", {{"handler", receiver.handler()}});
  ASSERT_TRUE(becomes(create("order.unpaid", 0), "done"));
  const auto named = matches(file_text(docs_folder() / "monitoring/tocsin.rules.yml") +
                                 file_text(docs_folder() / "monitoring/grafana-prometheus.json"),
                             "\\b(tocsin_[a-z_]+)");
  EXPECT_GE(named.size(), 15U);
  std::string metrics;
  for (const std::string& name : named)
    EXPECT_TRUE(eventually([&] {
      metrics = rest().get("/metrics").text;
      return metrics.find("\n" + name) != std::string::npos;
    })) << name;
  EXPECT_NE(metrics.find("tocsin_http_requests_total{code=\"200\",route=\"/metrics\"}"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("tocsin_attempt_seconds_count{biz_type=\"order.unpaid\",outcome=\"done\"} 1"),
            std::string::npos);

  const Json board = Json::parse(file_text(docs_folder() / "monitoring/grafana-sql.json"));
  pqxx::connection connection(database.url());
  int statements = 0;
  for (const Json& panel : board.at("panels")) {
    std::string sql = panel.at("targets")[0].at("rawSql");
    sql = std::regex_replace(sql, std::regex("\\$__timeFilter\\((\\w+)\\)"), "$1 > now() - interval '1 day'");
    pqxx::work tx(connection);
    tx.exec("SET LOCAL ROLE tocsin_report");
    EXPECT_NO_THROW(tx.exec(sql)) << sql;
    ++statements;
  }
  EXPECT_GE(statements, 8);
}

TEST_F(Monitoring, ARealPrometheusScrapesANode) {
  const std::filesystem::path folder =
      std::filesystem::path(required_env("TOCSIN_TEST_DIR")) / ("prometheus-" + std::to_string(node().port()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "prometheus.yml")
      << "global: {scrape_interval: 1s}\nscrape_configs:\n"
      << "  - job_name: tocsin\n    static_configs: [{targets: ['127.0.0.1:" << node().port() << "']}]\n";
  const int port = free_port();
  Process prometheus({"/usr/bin/env", "prometheus", "--config.file=" + (folder / "prometheus.yml").string(),
                      "--storage.tsdb.path=" + (folder / "data").string(),
                      "--web.listen-address=127.0.0.1:" + std::to_string(port)});
  Rest api(port);
  Reply reply;
  EXPECT_TRUE(eventually([&] {
    reply = api.get("/api/v1/query?query=tocsin_build_info");
    return reply.status == 200 && !reply.body["data"]["result"].empty();
  })) << reply.text;
  EXPECT_EQ(api.get("/api/v1/query?query=up").body["data"]["result"][0]["value"][1], "1");
}

}  // namespace
}  // namespace tocsin
