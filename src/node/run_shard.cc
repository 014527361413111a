// `tocsin shard ...`: reads which databases there are, and lets the mover work.
#include <algorithm>
#include <cstdio>

#include "api/json_writer.h"
#include "multidb/move_sessions.h"
#include "node/run.h"

namespace tocsin {
namespace {

Result<DatabaseId> database_of(const OpenDatabases& open, const std::string& name) {
  const auto found = std::ranges::find(open.databases, name, &OpenDatabase::name);
  if (found != open.databases.end()) return found->database_id;
  std::string known;
  for (const OpenDatabase& each : open.databases) known += (known.empty() ? "" : ", ") + each.name;
  return Error{ErrorCode::invalid, "there is no database '" + name + "' among those that were given: " + known, "to"};
}

Status move(const OpenDatabases& open, ShardMover& mover, const ShardCommand& command) {
  if (command.shard >= open.shards)
    return Error{ErrorCode::invalid, "there are shards 0 to " + std::to_string(open.shards - 1), "shard"};
  if (command.kind == ShardCommand::Kind::abort) return mover.abort(static_cast<Shard>(command.shard));
  const auto target = database_of(open, command.target);
  if (!target) return target.error();
  return mover.move(static_cast<Shard>(command.shard), *target);
}

Status show_moves(const OpenDatabases& open, ShardMover& mover, bool is_json) {
  const auto moves = mover.under_way();
  if (!moves) return moves.error();
  const auto name = [&](DatabaseId database_id) { return open.registry.at(database_id)->name.c_str(); };
  if (is_json) {
    std::string text;
    JsonWriter out(text);
    out.begin_object().key("items").begin_array();
    for (const ShardMove& each : *moves)
      out.begin_object()
          .field("shard", each.shard)
          .field("state", to_string(each.state))
          .field("from", name(each.source))
          .field("to", name(each.target))
          .end_object();
    out.end_array().end_object();
    std::printf("%s\n", text.c_str());
    return Unit{};
  }
  for (const ShardMove& each : *moves)
    std::printf("shard %d: %s, from %s to %s\n", each.shard, to_string(each.state), name(each.source),
                name(each.target));
  if (moves->empty()) std::printf("no shard is moving\n");
  return Unit{};
}

}  // namespace

int run_shard(const ShardCommand& command) {
  const auto open = open_databases(command.config);
  if (!open) return report_failure(open.error());
  for (const OpenDatabase& each : open->databases)
    if (!each.is_answering)
      return report_failure(
          {ErrorCode::unavailable, "database " + each.name + " (" + each.address + "): " + each.silence, ""});
  ThreadClock clock;
  ShardMover mover(move_databases(open->databases), move_sessions(open->databases), clock,
                   {command.source_url, command.source_passfile, command.longest_pause, command.patience},
                   [](const std::string& step) {
                     std::printf("%s\n", step.c_str());
                     std::fflush(stdout);
                   });
  const Status done = command.kind == ShardCommand::Kind::rebalance ? mover.rebalance(open->registry.map.database_ids)
                      : command.kind == ShardCommand::Kind::show    ? show_moves(*open, mover, command.json)
                                                                    : move(*open, mover, command);
  return done ? 0 : report_failure(done.error());
}

}  // namespace tocsin
