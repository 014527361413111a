// The batches of the coalescers: requests of many callers, and the functions that write a batch and answer each
// request.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ports/job_desk.h"
#include "tocsin/clock.h"

namespace tocsin {

// A request and where its reply goes; `done` is called once.
template <class Request, class Reply>
struct Asked {
  Request request;
  std::function<void(Result<Reply>)> done;
};

using CreateAsked = Asked<NewJob, CreateReply>;
using CancelAsked = Asked<JobId, CancelReply>;
using KeyCancelAsked = Asked<KeyCancel, KeyCancelReply>;
using ChangeAsked = Asked<PendingChange, ChangeReply>;
using RetryAsked = Asked<JobId, ChangeReply>;
using GetAsked = Asked<JobId, std::optional<Job>>;
using ListAsked = Asked<KeyQuery, std::vector<Job>>;

struct CreateItem : CreateAsked {
  MonoTime until{};  // of LockedRowRetries
};
struct ChangeItem {
  std::variant<CancelAsked, KeyCancelAsked, ChangeAsked, RetryAsked> what;
  MonoTime until{};
};
using OutcomesAsked = Asked<std::vector<FinishRequest>, std::vector<LeaseReply>>;
using ExtensionsAsked = Asked<std::vector<Extension>, std::vector<ExtendReply>>;
struct LeaseItem {
  std::variant<OutcomesAsked, ExtensionsAsked> what;
  MonoTime until{};
};
using ReadItem = std::variant<GetAsked, ListAsked>;

// Every function answers the items that it does not return; rows of returned items are locked by other transactions.
// When one item makes the statement of all fail, they are written in smaller parts. Called on database threads.

// REQUIRES: no item has an idempotency key.
void write_creates(JobDesk& desk, std::vector<CreateItem> items);
// Returns items whose key another transaction holds.
std::vector<CreateItem> write_keyed_creates(JobDesk& desk, std::vector<CreateItem> items);
// A first try waits up to 50 ms for locks, a later one for none. A last one answers every item and returns none.
enum class Try { first, first_and_last, second, last };
std::vector<ChangeItem> write_changes(JobDesk& desk, std::vector<ChangeItem> items, Try which);
// Writes acks, nacks and extensions. A returned item has only the leases whose rows are locked; its `done` merges their
// replies with those of the other leases. `node`: name of the node, stored with the outcome. `may_have_moved`: the
// items were locked before, maybe because their shards were moving; what is stale here is answered `busy`, because it
// may hold where its shard lives now.
std::vector<LeaseItem> write_leases(JobDesk& desk, const std::string& node, std::vector<LeaseItem> items,
                                    bool may_have_moved = false);
void answer_reads(JobDesk& desk, std::vector<ReadItem> items);

// Answers the item with the error; of a call some of whose leases are answered already, the others are `busy`.
void refuse(ChangeItem& item, const Error& error);
void refuse(LeaseItem& item, const Error& error);

}  // namespace tocsin
