// The requests of many callers that a Coalescer or a LockedRowRetries holds, and the functions that write a batch of
// them and answer each request. Database (node/database.h) passes these functions to both; they run on the threads of
// both.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ports/client_store.h"
#include "tocsin/clock.h"

namespace tocsin {

// A request and its callback. `done` is called once, on the thread that has written the request; it must not throw.
template <class Request, class Reply>
struct PendingRequest {
  Request request;
  std::function<void(Result<Reply>)> done;
};

using CreateAsked = PendingRequest<NewJob, CreateReply>;
using CancelAsked = PendingRequest<JobId, CancelReply>;
using KeyCancelAsked = PendingRequest<KeyCancel, KeyCancelReply>;
using ChangeAsked = PendingRequest<PendingChange, ChangeReply>;
using RetryAsked = PendingRequest<JobId, ChangeReply>;
using GetAsked = PendingRequest<JobId, std::optional<Job>>;
using ListAsked = PendingRequest<KeyQuery, KeyList>;

struct CreateItem : CreateAsked {
  MonoTime until{};       // set and read by LockedRowRetries
  bool was_held = false;  // write_creates() has found its key held before
};
struct ChangeItem {
  std::variant<CancelAsked, KeyCancelAsked, ChangeAsked, RetryAsked> what;
  MonoTime until{};
};
using OutcomesAsked = PendingRequest<std::vector<FinishRequest>, std::vector<LeaseResult>>;
using ExtensionsAsked = PendingRequest<std::vector<Extension>, std::vector<LeaseResult>>;
using LeasedAsked = PendingRequest<std::vector<Lease>, std::vector<std::optional<LeasedJob>>>;
struct LeaseItem {
  std::variant<OutcomesAsked, ExtensionsAsked, LeasedAsked> what;
  MonoTime until{};
};
using ReadItem = std::variant<GetAsked, ListAsked>;

// The three write_... functions answer every item that they do not return. A returned item is locked: another
// transaction holds its row, or its shard is moving to another database.
//
// Errors: an item whose row the database refuses to write (ports/row_refusal.h) gets the Error alone. Of creates
// write_creates() finds it, in smaller and smaller parts of the batch, because the client store creates all of a call
// or none; of the others the client store does. Other Errors go to all items of the statement.

// Returns an item if another transaction holds its idempotency key, or the job that has the key. Each try that meets a
// held key takes some 5 ms, so there are at most `tries` of them for items whose key was not held before. As many, or a
// quarter if these were not enough, are for the others, which come last. Items that were not reached by then are
// returned as well, before those with a held key: given again in this order, all are reached in time.
std::vector<CreateItem> write_creates(ClientStore& client_store, std::vector<CreateItem> items,
                                      int tries = ClientStore::kMostHeldTries);
// Which attempt this is for the items, and whether a locked item is returned or answered:
// - first: the first attempt of several. A locked row may delay the batch by some 50 ms. Returns locked items.
// - second: every later attempt but the last. Waits for no locked row. Returns locked items.
// - first_and_last, last: as first and second, but a locked item is answered as `locked`; none is returned.
enum class LockedRowAttempt { first, first_and_last, second, last };
// In each, the retries of dead jobs come after all other items, and wait some 50 ms in all for keys that other
// transactions hold (ClientStore::retry_each).
std::vector<ChangeItem> write_changes(ClientStore& client_store, std::vector<ChangeItem> items, LockedRowAttempt which);
// Writes acks, nacks and extensions of leases, and answers what nacks read before; waits for no lock. A returned item
// keeps only the leases whose rows are locked; its `done` adds the replies of the other leases. `node`: name of this
// node, stored with the outcome.
std::vector<LeaseItem> write_leases(ClientStore& client_store, const std::string& node, std::vector<LeaseItem> items);
// Answers all items. Gets share one statement, and lists by key share one. A statement that fails gives its Error to
// its own items.
void answer_reads(ClientStore& client_store, std::vector<ReadItem> items);
// How many jobs the answer to the item has at most.
std::size_t most_rows(const ReadItem& item);

// Answers the item with the error. If some leases of a call have been answered already, the others are answered one by
// one: as `in_doubt` for Error in_doubt, as `refused` for that of a refused row, otherwise as `busy`.
void refuse(ChangeItem& item, const Error& error);
void refuse(LeaseItem& item, const Error& error);

}  // namespace tocsin
