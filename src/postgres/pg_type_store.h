// PgTypeStore: the type registry. Implements TypeStore, which says what each call does and its Errors
// (ports/type_store.h). In the control database put, remove and set_paused change it and notify the nodes; in another
// database only mirror() writes the copy, without notification. Used by request threads, housekeeping, the outbox relay
// and shard moves. Thread: the one that owns the session.
#pragma once

#include "ports/type_store.h"
#include "postgres/session.h"

namespace tocsin {

class PgTypeStore final : public TypeStore {
 public:
  // `session` must outlive the store.
  explicit PgTypeStore(Session& session) : session_(session) {}
  Result<std::vector<BizType>> list(Removed removed) override;
  Result<std::optional<BizType>> find(const std::string& name) override;
  Result<Changes> changed_since(WallTime time) override;
  Result<bool> has_any(std::span<const std::string> names, Removed removed) override;
  using TypeStore::put;
  Result<PutReply> put(const BizType& type, std::optional<WallTime> version) override;
  using TypeStore::remove;
  Result<RemoveReply> remove(const std::string& name, Registry registry, std::optional<WallTime> version) override;
  Status renew(const std::string& name) override;
  Result<std::optional<BizType>> set_paused(const std::string& name, bool paused,
                                            std::optional<WallTime> until) override;
  Status mirror(std::span<const BizType> types) override;

 private:
  // A removal that has begun, or the reply why it has not. tocsin.takes_jobs() in the schema explains how a removal
  // works.
  struct Removal {
    RemoveReply reply = RemoveReply::removed;
    TypeId type_id = 0;
    std::string began{};  // time of the begin, as the server wrote it
    Registry registry = Registry::original;
    std::string version{};  // the version to remove; empty: any
    bool is_begun() const { return type_id != 0; }
  };
  Result<Removal> begin_removal(const std::string& name);
  Result<RemoveReply> finish_removal(const Removal& removal);
  void give_up(const Removal& removal);
  // Waits until all transactions that have an id now have ended. False: one is still open after two seconds.
  Result<bool> wait_for_older_transactions();

  Session& session_;
};

}  // namespace tocsin
