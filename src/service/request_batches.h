// The requests of many callers that Coalescer and LockedRowRetries hold, and the functions that write a batch of them
// and answer each one. A Database calls these on the threads of both.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ports/client_store.h"
#include "tocsin/clock.h"

namespace tocsin {

// A request and where its reply goes. `done` is called once, on the thread that has written the request; it must not
// throw.
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
using ListAsked = Asked<KeyQuery, KeyList>;

struct CreateItem : CreateAsked {
  MonoTime until{};  // set and read by LockedRowRetries
};
struct ChangeItem {
  std::variant<CancelAsked, KeyCancelAsked, ChangeAsked, RetryAsked> what;
  MonoTime until{};
};
using OutcomesAsked = Asked<std::vector<FinishRequest>, std::vector<LeaseResult>>;
using ExtensionsAsked = Asked<std::vector<Extension>, std::vector<LeaseResult>>;
struct LeaseItem {
  std::variant<OutcomesAsked, ExtensionsAsked> what;
  MonoTime until{};
};
using ReadItem = std::variant<GetAsked, ListAsked>;

// Every function answers the items that it does not return; rows of returned items are locked by other transactions, or
// their shards are moving. When one item makes the statement of all fail, the write_... functions write them in smaller
// parts; after Error unavailable or in_doubt all items of the statement get that error.

// Returns items whose idempotency key, or the job that has it, another transaction holds.
std::vector<CreateItem> write_creates(ClientStore& client_store, std::vector<CreateItem> items);
// first: the first try; a locked row may delay it by some 50 ms. second: every later try but the last; it waits for no
// lock. Both return locked items. first_and_last, last: the same, but they answer locked items as `locked` and return
// none.
enum class Try { first, first_and_last, second, last };
std::vector<ChangeItem> write_changes(ClientStore& client_store, std::vector<ChangeItem> items, Try which);
// Writes acks, nacks and extensions; waits for no lock. A returned item has only the leases whose rows are locked; its
// `done` merges their replies with those of the other leases. `node`: name of the node, stored with the outcome.
// `may_have_moved`: the items were locked before, maybe because their shards were moving. A lease that is stale here
// may then be valid in another database, so it is answered `busy` instead.
std::vector<LeaseItem> write_leases(ClientStore& client_store, const std::string& node, std::vector<LeaseItem> items,
                                    bool may_have_moved = false);
// After an Error of the gets or of the lists, all of that kind get it.
void answer_reads(ClientStore& client_store, std::vector<ReadItem> items);

// Answers the item with the error. Of a call some of whose leases are answered already, the others are `in_doubt` if
// the error is, else `busy`.
void refuse(ChangeItem& item, const Error& error);
void refuse(LeaseItem& item, const Error& error);

}  // namespace tocsin
