// tocsin nodes, shards, stats, explain: what the cluster does, and why a job has not fired.
#include <iostream>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/table.h"

namespace tocsin {
namespace {

struct ReadOptions : ClientOptions {
  std::string job_id;
};

// A list as a table, anything else as a record.
int show(const ReadOptions& options, const std::string& path) {
  const Json reply = RestClient(options.connection).get(path);
  if (options.json) {
    print_json(std::cout, reply);
    return 0;
  }
  const auto items = reply.find("items");
  if (items == reply.end())
    print_record(std::cout, reply, screen_width());
  else if (items->empty())
    std::cout << "none\n";
  else
    print_objects(std::cout, *items, screen_width());
  return 0;
}

int nodes(ReadOptions& options) { return show(options, "/v1/nodes"); }
int shards(ReadOptions& options) { return show(options, "/v1/shards"); }
int stats(ReadOptions& options) { return show(options, "/v1/stats"); }
int explain(ReadOptions& options) { return show(options, "/v1/jobs/" + options.job_id + "/explain"); }

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
