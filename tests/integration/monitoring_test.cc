// The rules and dashboards of docs/monitoring: valid, and about metrics and views that exist.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "integration/live_node.h"
#include "integration/outbox.h"
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

TEST_F(Monitoring, TheRulesAreValidAndPassTheirTests) {
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

// A sample or a family of exactly this name.
bool has_metric(const std::string& metrics, const std::string& name) {
  const auto has = [&](const std::string& text) { return metrics.find("\n" + text) != std::string::npos; };
  return has(name + "{") || has(name + " ") || has("# TYPE " + name + " ");
}

// `selector`: "metric{label", as a query begins.
bool has_label(const std::string& metrics, const std::string& selector) {
  const std::size_t brace = selector.find('{');
  const std::string start = selector.substr(0, brace + 1), label = selector.substr(brace + 1) + "=\"";
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(start) &&
        (line.find("{" + label) != std::string::npos || line.find("," + label) != std::string::npos))
      return true;
  return false;
}

TEST_F(Monitoring, EveryMetricAndLabelThatIsNamedExists) {
  put_type("order.unpaid",
           {{"handler", receiver.handler()}, {"slo", {{"lateness_ms", 60'000}, {"share", 0.9}}}, {"max_running", 10}});
  put_noop("paused");
  ASSERT_EQ(rest().post("/v1/types/paused/pause").status, 200);
  ASSERT_TRUE(becomes(create("order.unpaid", 0), "done"));
  const std::string queries = file_text(docs_folder() / "monitoring/tocsin.rules.yml") +
                              file_text(docs_folder() / "monitoring/grafana-prometheus.json");
  auto named = matches(queries + file_text(docs_folder() / "runbook.md"), "\\b(tocsin_[a-z_]+)");
  const auto selectors = matches(queries, "\\b(tocsin_[a-z_]+\\{[a-z_]+)[=!]");
  EXPECT_GE(named.size(), 20U);
  EXPECT_GE(selectors.size(), 5U);
  std::string metrics;
  const auto appears = [&](const std::function<bool()>& condition) {
    return eventually([&] {
      metrics = rest().get("/metrics").text;
      return condition();
    });
  };
  {
    TestDatabase a{0}, b{0};
    const OutboxDatabases two({a.url(), b.url()});  // a sole database needs no outbox
    const auto node_of_two = two.node();
    const std::string with_outbox = node_of_two->rest().get("/metrics").text;
    EXPECT_EQ(std::erase_if(named,
                            [&](const std::string& name) {
                              return name.starts_with("tocsin_outbox_") && has_metric(with_outbox, name);
                            }),
              2U);
  }
  const std::string of_failures = "tocsin_stage_errors_total";
  EXPECT_EQ(named.erase(of_failures), 1U);
  for (const std::string& name : named) EXPECT_TRUE(appears([&] { return has_metric(metrics, name); })) << name;
  {
    pqxx::connection other(database.url());
    pqxx::work holding(other);
    holding.exec("LOCK TABLE tocsin.job_live IN ACCESS EXCLUSIVE MODE");  // until a call of the engine has failed
    EXPECT_TRUE(appears([&] { return has_metric(metrics, of_failures); }));
  }
  for (const std::string& selector : selectors)
    EXPECT_TRUE(appears([&] { return has_label(metrics, selector); })) << selector;
  for (const char* sample : {"tocsin_http_requests_total{code=\"200\",route=\"/metrics\"} ",
                             "tocsin_attempt_seconds_count{biz_type=\"order.unpaid\",outcome=\"done\"} 1\n",
                             "tocsin_slo_missed_total{biz_type=\"order.unpaid\"} 0\n",
                             "tocsin_slo_target_share{biz_type=\"order.unpaid\"} 0.9\n"})
    EXPECT_NE(metrics.find(std::string("\n") + sample), std::string::npos) << sample;
  EXPECT_TRUE(std::regex_search(metrics, std::regex("\ntocsin_pool_wait_seconds_count [1-9]")))
      << "requests that wait for a database thread are observed";
}

TEST_F(Monitoring, APartOfANameIsNoName) {
  const std::string metrics = "\n# TYPE tocsin_jobs gauge\ntocsin_jobs{biz_type=\"a\",status=\"dead\"} 1\n";
  EXPECT_TRUE(has_metric(metrics, "tocsin_jobs"));
  EXPECT_FALSE(has_metric(metrics, "tocsin_job"));
  EXPECT_TRUE(has_label(metrics, "tocsin_jobs{status"));
  EXPECT_FALSE(has_label(metrics, "tocsin_jobs{stat"));
  EXPECT_FALSE(has_label(metrics, "tocsin_jobs{outcome"));
}

TEST_F(Monitoring, EveryPanelOfTheSqlDashboardIsAnswered) {
  const Json board = Json::parse(file_text(docs_folder() / "monitoring/grafana-sql.json"));
  pqxx::connection connection(database.url());
  int statements = 0;
  for (const Json& panel : board.at("panels")) {
    EXPECT_FALSE(panel.at("targets").empty()) << panel.at("title");
    for (const Json& target : panel.at("targets")) {
      const std::string sql =
          std::regex_replace(target.at("rawSql").get<std::string>(), std::regex("\\$__timeFilter\\((\\w+)\\)"),
                             "$1 > now() - interval '1 day'");
      pqxx::work tx(connection);
      tx.exec("SET LOCAL ROLE tocsin_report");
      EXPECT_NO_THROW(tx.exec(sql)) << panel.at("title") << ": " << sql;
      ++statements;
    }
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
