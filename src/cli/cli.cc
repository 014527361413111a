#include "cli/cli.h"

#include <csignal>
#include <iostream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "tocsin/version.h"

namespace tocsin {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

// "tocsin job create", as far as the arguments got.
std::string full_name(const CLI::App* command) {
  const std::string& name = command->get_name();
  return command->get_parent() ? full_name(command->get_parent()) + " " + name : name;
}

const CLI::App* deepest(const CLI::App* command) {
  const auto parsed = command->get_subcommands();
  for (const CLI::App* next : parsed)
    if (!next->get_name().empty()) return deepest(next);
  return command;
}

int bad_usage(const CLI::App& root, const std::string& message) {
  const CLI::App* command = deepest(&root);
  if (command->get_require_subcommand_min() > 0) {
    const auto unknown = command->remaining();
    std::cerr << "error: "
              << (unknown.empty() ? "a command is missing" : "unknown command '" + printable(unknown.front()) + "'")
              << "\n\n"
              << root.help();
  } else {
    std::cerr << "error: " << printable(message) << "\nSee " << full_name(command) << " --help\n";
  }
  return kBadUsage;
}

}  // namespace

std::unique_ptr<CLI::App> make_app(Chosen& chosen) {
  auto app = std::make_unique<CLI::App>("Tocsin: hand it a deadline, it acts on time.", "tocsin");
  app->get_formatter()->column_width(30);
  app->set_version_flag("--version", std::string("tocsin ") + kVersion);
  app->require_subcommand(1);
  add_serve_command(*app, chosen);
  add_migrate_command(*app, chosen);
  add_job_commands(*app, chosen);
  add_type_commands(*app, chosen);
  add_cluster_commands(*app, chosen);
  add_report_command(*app, chosen);
  add_top_command(*app, chosen);
  add_shard_commands(*app, chosen);
  add_bench_command(*app, chosen);
  // Last: commands inherit what their parent has when they are added.
  app->footer(
      "tocsin COMMAND --help shows more.\n"
      "Exit codes: 0 done, 1 failed, 2 bad usage.");
  return app;
}

int run_cli(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe or socket is an error where it is written, not the end of the process
  Chosen chosen;
  const auto app = make_app(chosen);
  try {
    app->parse(argc, argv);
    apply_settings(*chosen.command, process_environment);
    const int code = chosen.run();
    return std::cout.flush() ? code : kFailed;
  } catch (const CLI::Success& help) {
    return app->exit(help);
  } catch (const CLI::Error& error) {
    return bad_usage(*app, error.what());
  } catch (const BadUsage& error) {
    return bad_usage(*app, error.what());
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return kFailed;
  }
}

}  // namespace tocsin
