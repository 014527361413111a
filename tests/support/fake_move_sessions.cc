// Sessions over FakeMoves: every call passes the fault point on its way there and back.
#include <utility>

#include "support/fake_moves.h"

namespace tocsin {

using State = ShardMove::State;

namespace {

std::uint64_t next_call() {
  static std::uint64_t calls = 0;
  return ++calls;
}

// The lock on the row of a move, from the begin of a transaction to its end. A COMMIT that is on its way holds it.
class RowLock {
 public:
  RowLock(FakeMoves& moves, Shard shard, std::uint64_t call) : moves_(moves), shard_(shard), call_(call) {
    moves_.lock_row(shard_, call_);
  }
  ~RowLock() { moves_.unlock_row(shard_, call_); }
  RowLock(const RowLock&) = delete;
  RowLock& operator=(const RowLock&) = delete;

 private:
  FakeMoves& moves_;
  const Shard shard_;
  const std::uint64_t call_;
};

// Of one session: how a call reaches its database.
class FakeMoveSession : public FakeSession {
 public:
  FakeMoveSession(FakeMoves& moves, std::optional<Shard> shard, const Clock& clock, FaultPoint& faults)
      : FakeSession(moves.data(), &clock, &faults), moves_(moves), shard_(shard) {}

 protected:
  // `effect` takes the database and its clock.
  template <class T, class Effect>
  Result<T> ask(std::string_view verb, bool is_write, Effect effect) {
    const std::uint64_t began = next_call();
    return call<T>(verb, is_write, [began, effect, shard = shard_, &moves = moves_](WallTime now) -> Result<T> {
      if (shard && began < moves.sessions_ended(*shard)) return Error{ErrorCode::in_doubt, "the session was ended", ""};
      return effect(moves, now);
    });
  }
  // A transaction that locks the row of the move first.
  template <class T, class Effect>
  Result<T> locked(std::string_view verb, Shard shard, Effect effect) {
    const std::uint64_t began = next_call();
    const auto lock = std::make_shared<RowLock>(moves_, shard, began);
    return ask<T>(verb, true, [shard, began, lock, effect](FakeMoves& moves, WallTime now) -> Result<T> {
      if (moves.is_row_locked(shard, began)) return Error{ErrorCode::conflict, "the move is locked", ""};
      return effect(moves, now);
    });
  }
  template <class Effect>
  Status change(std::string_view verb, const ShardMove& move, Effect effect) {
    return locked<Unit>(verb, move.shard, effect);
  }

  // As change(), of the list of shards that live in the database: another call that changes it holds its row.
  template <class Effect>
  Status change_list(std::string_view verb, const ShardMove& move, Effect effect) {
    const std::uint64_t began = next_call();
    const auto lock = std::make_shared<RowLock>(moves_, kList, began);
    return change(verb, move, [began, lock, effect](FakeMoves& moves, WallTime now) -> Status {
      if (moves.is_row_locked(kList, began)) return Error{ErrorCode::conflict, "the list of shards is locked", ""};
      return effect(moves, now);
    });
  }

  static constexpr Shard kList = -1;  // as the number of a row that calls lock
  FakeMoves& moves_;
  const std::optional<Shard> shard_;
};

class FakeMoveStore final : public MoveStore, private FakeMoveSession {
 public:
  using FakeMoveSession::FakeMoveSession;

  Result<std::vector<ShardMove>> list() override {
    return ask<std::vector<ShardMove>>("moves", false, [](FakeMoves& db, WallTime now) { return db.list(now); });
  }
  Result<std::optional<ShardMove>> take(Shard shard, std::optional<DatabaseId> target,
                                        std::optional<std::int64_t> driver) override {
    return locked<std::optional<ShardMove>>(
        "move_take", shard, [=](FakeMoves& db, WallTime now) { return db.take(shard, target, driver, now); });
  }
  Result<bool> take_over(ShardMove& move) override {
    auto taken = locked<std::optional<ShardMove>>(
        "move_rescue", move.shard, [move](FakeMoves& db, WallTime now) { return db.take_over(move, now); });
    if (!taken) return taken.error();
    if (*taken) move = **taken;
    return taken->has_value();
  }
  Status set_state(ShardMove& move, State state) override {
    auto done = change("move_set_state", move,
                       [move, state](FakeMoves& db, WallTime now) { return db.set_state(move, state, now); });
    if (done) move.may_be_frozen = move.may_be_frozen || state == State::switching, move.state = state;
    return done;
  }
  Status keep(const ShardMove& move) override {
    return change("move_extend_freeze", move, [move](FakeMoves& db, WallTime now) { return db.keep(move, now); });
  }
  Status set_writable(ShardMove& move) override {
    if (!move.may_be_frozen) return Unit{};
    auto done = change("move_set_writable", move, [move](FakeMoves& db, WallTime) { return db.set_writable(move); });
    if (done) move.may_be_frozen = false;
    return done;
  }
  Status flip(ShardMove& move) override {
    auto done = change("move_flip_map", move, [move](FakeMoves& db, WallTime now) { return db.flip(move, now); });
    if (done) move.state = State::switched;
    return done;
  }
  Result<std::vector<std::string>> nodes_without(DatabaseId) override {
    return ask<std::vector<std::string>>("move_nodes_without", false,
                                         [](FakeMoves&, WallTime) { return std::vector<std::string>(); });
  }
  Result<std::int64_t> map_version() override {
    return ask<std::int64_t>("map_version", false,
                             [](FakeMoves& db, WallTime) { return db.data().members.map().version; });
  }
  Result<std::vector<std::string>> nodes_behind(std::int64_t version) override {
    return ask<std::vector<std::string>>("move_nodes_behind", false,
                                         [version](FakeMoves& db, WallTime) { return db.nodes_behind(version); });
  }
  Status end(const ShardMove& move) override {
    return change("move_end", move, [move](FakeMoves& db, WallTime) { return db.end(move); });
  }
  Status recall(const ShardMove& lost) override {
    return change("move_recall", lost, [lost](FakeMoves& db, WallTime now) { return db.recall(lost, now); });
  }
  Result<std::optional<ShardMove>> noted(Shard shard) override {
    return ask<std::optional<ShardMove>>("move_of_shard", false,
                                         [shard](FakeMoves& db, WallTime) { return db.noted(shard); });
  }
  Status end_others() override {
    return ask<Unit>("move_end_sessions", true, [shard = *shard_, by = next_call()](FakeMoves& db, WallTime) -> Status {
      db.end_sessions(shard, by);
      return Unit{};
    });
  }
  Status note(const ShardMove& move) override {
    return change("move_note", move, [move](FakeMoves& db, WallTime) { return db.note(move); });
  }
  Status note_successor(const ShardMove& move) override {
    return change("move_note_successor", move, [move](FakeMoves& db, WallTime) { return db.note_successor(move); });
  }
  Status forget(const ShardMove& move) override {
    return change("move_forget", move, [move](FakeMoves& db, WallTime) -> Status { return db.forget(move), Unit{}; });
  }
  Result<std::vector<std::string>> tables(Shard) override { return std::vector<std::string>{"tocsin.job"}; }
  Result<std::int64_t> delete_rows(const ShardMove& move, const std::string&) override {
    return locked<std::int64_t>("forget_shard", move.shard,
                                [move](FakeMoves& db, WallTime) { return db.delete_rows(move); });
  }
  Status freeze(const ShardMove& move) override {
    return change_list("freeze_shard", move, [move](FakeMoves& db, WallTime) { return db.freeze(move); });
  }
  Status unfreeze(const ShardMove& move) override {
    return change_list("unfreeze", move, [move](FakeMoves& db, WallTime) { return db.unfreeze(move); });
  }
  Status thaw(const ShardMove& move) override {
    return change_list("thaw_shard", move, [move](FakeMoves& db, WallTime) { return db.thaw(move); });
  }
  Result<std::string> take_counts(const ShardMove& move) override {
    return locked<std::string>("take_counts", move.shard,
                               [move](FakeMoves& db, WallTime) { return db.take_counts(move); });
  }
  Status empty_counts(const ShardMove& move) override {
    return change("empty_counts", move, [move](FakeMoves& db, WallTime) { return db.empty_counts(move); });
  }
  Status can_open(const ShardMove& move) override {
    return change("can_open", move, [move](FakeMoves& db, WallTime) { return db.can_open(move); });
  }
  Status open(const ShardMove& move) override {
    return change_list("open_shard", move, [move](FakeMoves& db, WallTime) { return db.open(move); });
  }
  Status add_counts(const ShardMove& move, const std::string& counts) override {
    return change("add_counts", move, [move, counts](FakeMoves& db, WallTime) { return db.add_counts(move, counts); });
  }
};

class FakeShardCopy final : public ShardCopy, private FakeMoveSession {
 public:
  using FakeMoveSession::FakeMoveSession;

  Status publish(const ShardMove& move) override {
    return change("publish", move, [move](FakeMoves& db, WallTime) { return db.publish(move); });
  }
  Status make_slot(const ShardMove& move) override {
    return ask<Unit>("make_slot", true, [move, began = next_call()](FakeMoves& db, WallTime) -> Status {
      db.make_slot(move.shard, began);
      return Unit{};
    });
  }
  Result<bool> publishes_all(const ShardMove& move) override {
    return ask<bool>("publishes_all", false, [move](FakeMoves& db, WallTime) { return db.publishes(move.shard); });
  }
  Status unpublish(const ShardMove& move) override {
    return change("unpublish", move, [move](FakeMoves& db, WallTime) { return db.unpublish(move); });
  }
  Result<std::string> slot(const ShardMove& move) override { return std::to_string(move.shard); }
  Status drop_slots(const ShardMove& move, const std::string&) override {
    return ask<Unit>("drop_slots", true, [move, began = next_call()](FakeMoves& db, WallTime) -> Status {
      db.drop_slot(move.shard, began);
      return Unit{};
    });
  }
  Result<bool> has_slots(const std::vector<std::string>& names) override {
    return ask<bool>("has_slots", false, [names](FakeMoves& db, WallTime) {
      return std::ranges::all_of(
          names, [&](const std::string& name) { return db.has_slot(static_cast<Shard>(std::stoi(name))); });
    });
  }
  Result<Subscription> subscription(const ShardMove& move) override {
    return ask<Subscription>("subscription", false,
                             [move](FakeMoves& db, WallTime) { return db.subscription(move.shard); });
  }
  Result<std::string> position() override {
    return ask<std::string>("position", false, [](FakeMoves& db, WallTime) { return std::to_string(db.position()); });
  }
  Result<std::int64_t> behind(const ShardMove& move, const std::string& position) override {
    return ask<std::int64_t>("behind", false, [move, at = std::stoll(position)](FakeMoves& db, WallTime) {
      return db.behind(move.shard, at);
    });
  }
  Status make_history(const std::vector<std::string>&) override { return Unit{}; }
  Status subscribe(const ShardMove& move, const std::string&, const std::string&) override {
    return change("subscribe", move, [move](FakeMoves& db, WallTime) { return db.subscribe(move); });
  }
  Result<std::string> why_no_worker(const ShardMove&) override { return std::string(); }
  Result<std::int64_t> failures(const ShardMove& move) override {
    return ask<std::int64_t>("failures", false, [move](FakeMoves& db, WallTime) { return db.failures(move.shard); });
  }
  Result<std::pair<int, int>> copied(const ShardMove& move) override {
    return ask<std::pair<int, int>>(
        "copied", false, [move](FakeMoves& db, WallTime) { return std::pair(db.is_copied(move.shard) ? 1 : 0, 1); });
  }
  Result<std::vector<std::string>> slots_needed(const ShardMove&) override { return std::vector<std::string>(); }
  Result<std::string> stop_workers(const ShardMove& move) override {
    auto off = change("stop_workers", move, [move](FakeMoves& db, WallTime) { return db.disable(move); });
    if (!off) return off.error();
    return std::string();
  }
  Status unsubscribe(const ShardMove& move) override {
    return change("unsubscribe", move, [move](FakeMoves& db, WallTime) { return db.unsubscribe(move); });
  }
};

class FakeMoveStores final : public MoveSession {
 public:
  FakeMoveStores(FakeMoves& moves, std::optional<Shard> shard, const Clock& clock, FaultPoint& faults)
      : store_(moves, shard, clock, faults),
        copy_(moves, shard, clock, faults),
        types_(moves.data(), &clock, &faults) {}
  MoveStore& store() override { return store_; }
  ShardCopy& copy() override { return copy_; }
  TypeStore& types() override { return types_; }

 private:
  FakeMoveStore store_;
  FakeShardCopy copy_;
  FakeTypeStore types_;
};

}  // namespace

std::unique_ptr<MoveSession> fake_move_end(FakeMoves& moves, std::optional<Shard> shard, const Clock& clock,
                                           FaultPoint& faults) {
  return std::make_unique<FakeMoveStores>(moves, shard, clock, faults);
}

}  // namespace tocsin
