// TypeStore: the type registry, the table of all types (kinds of timeouts, see ports/biz_type.h). The REST API changes
// it, the node reads it (TypePublisher, src/node), and copies it to its other databases. The firing path does not use
// it. Implemented by PgTypeStore (src/postgres) and by a fake in tests/support.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ports/biz_type.h"
#include "tocsin/error.h"

namespace tocsin {

// The type registry in the control database, or its mirror in another. put(), remove() and set_paused() are for the
// control database, mirror() is for the others.
// Thread: owner only (each thread has its own).
class TypeStore {
 public:
  virtual ~TypeStore() = default;
  // All types, sorted by name. A removed type stays in the registry as long as jobs may name it.
  enum class Removed { left_out, included };
  virtual Result<std::vector<BizType>> list(Removed removed = Removed::left_out) = 0;
  // The type of this name; nullopt: there is none, or it was removed.
  virtual Result<std::optional<BizType>> find(const std::string& name) = 0;
  // The types whose gmt_modified is later than `time`, removed ones included, and the version of the whole registry. A
  // caller adds these changes to its older list. If the list then has another version, the caller must list all types
  // again: a change was committed after a newer one, or a type was deleted.
  struct Changes {
    std::vector<BizType> types;
    RegistryVersion version;
  };
  virtual Result<Changes> changed_since(WallTime time) = 0;
  // Whether one of these names is registered. Costs an index look-up per name.
  virtual Result<bool> has_any(std::span<const std::string> names, Removed removed) = 0;
  // Creates or replaces the type of this name. Its id and pause state stay; type_id, pause state and times of `type`
  // are ignored. `version`: writes only if this is the gmt_modified of the stored type; nullopt: writes in any case.
  struct PutReply {
    BizType type;                   // as it is stored now
    bool is_new = false;            // there was no such type, or it was removed
    bool is_other_version = false;  // nothing was written, and `type` is empty
  };
  virtual Result<PutReply> put(const BizType& type, std::optional<WallTime> version) = 0;
  Result<PutReply> put(const BizType& type) { return put(type, std::nullopt); }
  // Marks the type as removed in this database, unless it has live jobs or outbox entries here. Afterwards no
  // transaction creates a job of the type. Waits some seconds for transactions that may be creating jobs. `registry`:
  // which one this database has. A copy keeps its gmt_modified, and stays removed until mirror() writes a newer
  // version. `version`: removes the type only if this is its gmt_modified; nullopt: in any case.
  enum class RemoveReply {
    removed,
    has_live_jobs,
    jobs_may_come,  // not removed: transactions that may create jobs of it are open, or it was changed meanwhile; ask
                    // again
    not_found,
  };
  enum class Registry { original, copy };  // of the control database; of another database
  virtual Result<RemoveReply> remove(const std::string& name, Registry registry, std::optional<WallTime> version) = 0;
  Result<RemoveReply> remove(const std::string& name) { return remove(name, Registry::original, std::nullopt); }
  // Pauses the type until `until` (nullopt: until it is resumed), or resumes it (paused = false). nullopt: no such
  // type.
  virtual Result<std::optional<BizType>> set_paused(const std::string& name, bool paused,
                                                    std::optional<WallTime> until) = 0;
  // Gives the type a new gmt_modified, so that its copies are written again, also copies that are marked as removed.
  // Ends a removal that is under way.
  virtual Status renew(const std::string& name) = 0;
  // Copies these types, ids included, into this database. A copy whose gmt_modified is not earlier stays. Safe to
  // repeat. REQUIRES: this is not the control database.
  virtual Status mirror(std::span<const BizType> types) = 0;
};

}  // namespace tocsin
