// Measures one node, or several, against one PostgreSQL, beside what that PostgreSQL does alone in the same run.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <thread>

#include "bench/machine.h"
#include "bench/measurements.h"
#include "bench/own_node.h"
#include "bench/report.h"
#include "bench_core/process.h"
#include "cli/config_file.h"
#include "cli/rest_client.h"

namespace tocsin::bench {
namespace {

constexpr double kQuiet = 0.5;  // load average above which the figures are those of other programs too

struct Options {
  std::string binary = process_environment("TOCSIN_BINARY").value_or("");
  std::string database = process_environment("TOCSIN_TEST_DATABASE").value_or("");
  std::vector<std::string> only;
  std::vector<int> claimers = {1, 2};
  int rounds = 3;
  int nodes = 1;
  std::vector<std::size_t> depths;
  std::optional<std::size_t> history;
  std::optional<int> snapshot_s;
  std::string json;
  bool is_quick = false;
  bool is_markdown = false;
};

// The checkout this program was built in, or is called from.
std::string find_root() {
  namespace fs = std::filesystem;
  for (fs::path start : {fs::read_symlink("/proc/self/exe").parent_path(), fs::current_path()}) {
    for (fs::path path = start; path != path.parent_path(); path = path.parent_path())
      if (fs::exists(path / "scripts" / "postgres.sh")) return path.string();
  }
  throw Failure("no scripts/postgres.sh around this program; run it from a checkout");
}

// An interrupted run leaves nothing behind: the signals go to a thread of their own, which cleans up and ends the
// program. REQUIRES: called before any other thread is started.
void clean_up_when_interrupted(PostgresServer& server, const sigset_t& signals) {
  std::thread([&server, signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    std::cerr << "\ninterrupted: cleaning up\n";
    Process::kill_running();
    server.remove_all();
    ::_exit(128 + signal);
  }).detach();
}

Sizes sizes_of(const Options& options) {
  Sizes sizes = options.is_quick ? quick_sizes() : Sizes{};
  if (!options.depths.empty()) sizes.depths = options.depths;
  sizes.history_jobs = options.history.value_or(sizes.history_jobs);
  sizes.report_jobs = options.history.value_or(sizes.report_jobs);
  sizes.key_history_jobs = options.history.value_or(sizes.key_history_jobs);
  sizes.slow_list_rows = options.history.value_or(sizes.slow_list_rows);
  sizes.snapshot_s = options.snapshot_s.value_or(sizes.snapshot_s);
  return sizes;
}

// Whether everything could be measured.
bool measure(Bench& bench, const Options& options) {
  std::vector<Measurement> chosen;
  for (const Measurement& measurement : measurements()) {
    const auto& only = options.only;
    if ((only.empty() && !measurement.is_long) || std::find(only.begin(), only.end(), measurement.name) != only.end())
      chosen.push_back(measurement);
  }
  bool is_complete = true;
  for (bench.round = 0; bench.round < options.rounds; ++bench.round) {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i].is_long && bench.round > 0) continue;
      std::cerr << "round " << bench.round + 1 << '/' << options.rounds << ", " << i + 1 << '/' << chosen.size() << ": "
                << chosen[i].name << '\n';
      try {
        chosen[i].run(bench);
      } catch (const std::exception& error) {
        std::cerr << "error: " << chosen[i].name << " could not be measured: " << error.what() << '\n';
        is_complete = false;
      }
    }
  }
  return is_complete;
}

int bench(const Options& options) {
  const std::string root = find_root();
  const std::string binary = options.binary.empty() ? root + "/build/release/tocsin" : options.binary;
  if (::access(binary.c_str(), X_OK) != 0) throw BadUsage(binary + " is no program; build it, or name one by --binary");
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  PostgresServer server(options.database, root);
  clean_up_when_interrupted(server, signals);
  const Machine machine = describe_machine(server);
  if (load_average() > kQuiet) std::cerr << "note: other programs are busy on this machine; the figures suffer\n";

  Bench bench{server, {binary, options.nodes}, options.claimers, sizes_of(options), options.rounds};
  const bool is_complete = measure(bench, options);
  const std::vector<Section> sections = catalog({options.claimers, bench.sizes.depths});
  const Report report{machine, sections, bench.results, options.rounds, options.nodes, options.is_quick};
  (options.is_markdown ? print_markdown : print_table)(std::cout, report);
  if (!options.json.empty()) write_json(options.json, report);
  return is_complete ? 0 : 1;
}

void add_options(CLI::App& app, Options& options) {
  std::vector<std::string> names, on_request;
  for (const Measurement& measurement : measurements()) {
    names.push_back(measurement.name);
    if (measurement.is_long) on_request.push_back(measurement.name);
  }
  app.add_option("--binary", options.binary, "The node's program (TOCSIN_BINARY, build/release/tocsin)")
      ->option_text("FILE");
  app.add_option("--database", options.database,
                 "A maintenance database where it may create others (TOCSIN_TEST_DATABASE);\n"
                 "without one it starts a private cluster below TMPDIR or /var/tmp")
      ->option_text("URL");
  app.add_option("--only", options.only,
                 "Only these, separated by commas: " + CLI::detail::join(names, ", ") + ";\n" +
                     CLI::detail::join(on_request, ", ") + "\nrun only when they are named")
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->option_text("NAMES");
  app.add_option("--claimers", options.claimers, "Claimers of the drain, each count in turn (1,2)")
      ->delimiter(',')
      ->check(CLI::Range(1, 16))
      ->option_text("N,N");
  app.add_option("--depths", options.depths,
                 "Jobs waiting for depth, each count in turn (0,1000000,10000000);\n"
                 "the first is what the others are compared with")
      ->delimiter(',')
      ->option_text("N,N");
  app.add_option("--history", options.history,
                 "Finished jobs for history, key_history and leases; live and\n"
                 "finished ones for reports (10000000; key_history and leases\n"
                 "1000000)")
      ->check(CLI::PositiveNumber)
      ->option_text("N");
  app.add_option("--snapshot-s", options.snapshot_s, "Seconds that the snapshot is held (600)")
      ->check(CLI::Range(1, 86'400))
      ->option_text("N");
  app.add_option("--nodes", options.nodes, "Nodes that share the database of a measurement (1)")
      ->check(CLI::Range(1, 8))
      ->option_text("N");
  app.add_option("--rounds", options.rounds, "Rounds; the median counts (3)")
      ->check(CLI::Range(1, 100))
      ->option_text("N");
  app.add_option("--json", options.json, "Also write every value of every round there, as JSON Lines")
      ->option_text("FILE");
  app.add_flag("--markdown", options.is_markdown, "Print for a document");
  app.add_flag("--quick", options.is_quick, "A tenth of the work, for trying out");
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Measures a node beside what its PostgreSQL does alone in the same run.", "tocsin_bench");
  add_options(app, options);
  try {
    app.parse(argc, argv);
    return bench(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const BadUsage& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace
}  // namespace tocsin::bench

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "serve") return tocsin::bench::serve_main(argc, argv);
  return tocsin::bench::run(argc, argv);
}
