// tocsin shard move, rebalance and moves: which database each shard lives in. They speak to the databases themselves.
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/node_options.h"
#include "node/run.h"

namespace tocsin {
namespace {

struct ShardOptions : ShardCommand {
  bool is_abort = false;
};

int run(ShardOptions& options) {
  check(options.config);
  if (options.kind == ShardCommand::Kind::move) {
    if (options.is_abort == !options.target.empty()) throw BadUsage("give either --to NAME or --abort");
    if (options.is_abort) options.kind = ShardCommand::Kind::abort;
  } else if (!options.source_url.empty()) {
    throw BadUsage("--source-url is the URL of one source, and shards may leave several: use 'tocsin shard move'");
  }
  return run_shard(options);
}

std::shared_ptr<ShardOptions> add(CLI::App& parent, Chosen& chosen, const char* name, const char* summary,
                                  const char* footer, ShardCommand::Kind kind) {
  auto options = std::make_shared<ShardOptions>();
  options->kind = kind;
  CLI::App* command = add_command(parent, name, summary, footer);
  if (kind == ShardCommand::Kind::move) {
    command->add_option("SHARD", options->shard, "The shard")->required()->check(CLI::Range(0, 1023))->option_text(" ");
    command->add_option("--to", options->target, "Target database")->option_text("NAME");
    command->add_flag("--abort", options->is_abort, "Roll back a move that is under way");
  }
  if (kind == ShardCommand::Kind::move || kind == ShardCommand::Kind::rebalance) {
    CLI::Option* source_url =
        command->add_option("--source-url", options->source_url, "The shard's database, as the other reaches it")
            ->option_text("URL");
    if (kind == ShardCommand::Kind::rebalance) source_url->group("");  // known, so that it is refused with the reason
    command
        ->add_option("--source-passfile", options->source_passfile, "Its password, in a file on the target's machine")
        ->option_text("FILE");
    add_duration(*command, "--longest-pause", options->longest_pause,
                 "The shard is write-frozen no longer than this (1s)", "50ms", "30s");
    add_duration(*command, "--patience", options->patience, "How long failing steps are tried again (1m)", "1s", "1d");
  }
  if (kind == ShardCommand::Kind::show) command->add_flag("--json", options->json, "Print JSON");
  add_database_options(*command, options->config);
  on_run(command, chosen, options, run);
  return options;
}

}  // namespace

void add_shard_commands(CLI::App& root, Chosen& chosen) {
  CLI::App* shard = add_command(root, "shard", "Move shards between databases", "");
  shard->require_subcommand(1);
  add(*shard, chosen, "move", "Move a shard while it is in use",
      "Give all databases, control database first. Interrupted, the same command\n"
      "continues.\n"
      "Example:\n"
      "  tocsin shard move 7 --to b --database a=URL --database b=URL",
      ShardCommand::Kind::move);
  add(*shard, chosen, "rebalance", "Spread the shards over all databases",
      "One move after the other. Interrupted, the same command continues.", ShardCommand::Kind::rebalance);
  add(*shard, chosen, "moves", "List the moves under way", "", ShardCommand::Kind::show);
}

}  // namespace tocsin
