// tocsin nodes, shards, stats, explain: what the cluster does, and why a job has not fired.
#include <array>
#include <iostream>

#include "cli/command.h"
#include "cli/duration.h"
#include "cli/print.h"
#include "cli/table.h"

namespace tocsin {
namespace {

struct ReadOptions : ClientOptions {
  std::string job_id;
};

// Prints the server's answer as JSON, or human-readable by `print`.
int show(const ReadOptions& options, const std::string& path, void (*print)(const Json&)) {
  const RestReply reply = RestClient(options.connection).get_reply(path);
  note_missing(std::cerr, reply.body);
  options.json ? print_json(std::cout, reply) : print(reply.body);
  return 0;
}

// Prints every page of a list as JSON, or its items human-readable by `print`.
int show_list(const ReadOptions& options, const std::string& path, void (*print)(const Json& items)) {
  const Pages all = read_pages(options.connection, path, {{"limit", "1000"}}, /*are_all=*/true);
  note_missing(std::cerr, {{"missing", all.missing}});
  if (options.json)
    std::cout << all.text << '\n';
  else
    print(all.items);
  return 0;
}

void print_items(const Json& items) {
  if (items.empty())
    std::cout << "none\n";
  else
    print_objects(std::cout, items, screen_width());
}

// Shows a move as words, in a column that exists only while a shard is moving.
void print_shards(const Json& items) {
  Json shown = items;
  for (Json& item : shown)
    if (const auto move = item.find("move"); move != item.end())
      *move = move->value("state", "") + " to " + move->value("to", "");
  print_items(shown);
}

void print_stats(const Json& reply) {
  using Align = Column::Align;
  constexpr std::array kStatuses = {"pending", "running", "done", "cancelled", "dead"};
  Table table({{"TYPE", Align::left, true},
               {"PENDING", Align::right},
               {"RUNNING", Align::right},
               {"DONE", Align::right},
               {"CANCELLED", Align::right},
               {"DEAD", Align::right}});
  const auto add_row = [&](const std::string& name, const Json& counts) {
    std::vector<std::string> cells = {name};
    for (const char* status : kStatuses) cells.push_back(cell(counts, status));
    table.add(std::move(cells));
  };
  for (const Json& type : reply.value("items", Json::array())) add_row(cell(type, "biz_type"), type);
  add_row("all", reply.value("totals", Json::object()));
  table.print(std::cout, screen_width());

  const Json late = reply.value("lateness_ms", Json::object());
  std::cout << "\nlateness  ";
  for (const char* key : {"p50", "p90", "p99", "max"})
    std::cout << key << ' ' << format_duration(late.value(key, 0.0)) << "  ";
  std::cout << "(" << cell(late, "n") << " starts on this node)\n";
  const Json backlog = reply.value("backlog", Json::object());
  std::cout << "overdue   " << cell(backlog, "overdue") << (backlog.value("is_capped", false) ? " or more" : "")
            << '\n';
}

// The reason is what was asked for; the rest is evidence.
void print_explanation(const Json& reply) {
  Json evidence = reply;
  evidence.erase("reason");
  evidence.erase("job");
  print_text(std::cout, cell(reply, "reason"), screen_width());
  std::cout << '\n';
  print_record(std::cout, evidence, screen_width());
}

int nodes(ReadOptions& options) { return show_list(options, "/v1/nodes", print_items); }
int shards(ReadOptions& options) { return show_list(options, "/v1/shards", print_shards); }
int stats(ReadOptions& options) { return show(options, "/v1/stats", print_stats); }
int explain(ReadOptions& options) {
  return show(options, "/v1/jobs/" + options.job_id + "/explain", print_explanation);
}

void add(CLI::App& root, Chosen& chosen, const char* name, const char* summary, int (*run)(ReadOptions&)) {
  auto options = std::make_shared<ReadOptions>();
  CLI::App* command = add_command(root, name, summary, "");
  if (run == explain)
    command->add_option("JOB_ID", options->job_id, "The job")->required()->check(not_a_job_id)->option_text(" ");
  add_client_options(*command, *options);
  on_run(command, chosen, options, run);
}

}  // namespace

void add_cluster_commands(CLI::App& root, Chosen& chosen) {
  add(root, chosen, "nodes", "List the nodes of the cluster", nodes);
  add(root, chosen, "shards", "List the shards and who scans them", shards);
  add(root, chosen, "stats", "Counts, lateness and backlog", stats);
  add(root, chosen, "explain", "Say why a job has, or has not, fired", explain);
}

}  // namespace tocsin
