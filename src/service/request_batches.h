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
  MonoTime until{};  // in the lane of locked rows
};
struct ChangeItem {
  std::variant<CancelAsked, KeyCancelAsked, ChangeAsked, RetryAsked> what;
  MonoTime until{};
};
using OutcomesAsked = Asked<std::vector<FinishRequest>, std::vector<LeaseReply>>;
using ExtensionsAsked = Asked<std::vector<Extension>, std::vector<ExtendReply>>;
using LeaseItem = std::variant<OutcomesAsked, ExtensionsAsked>;
using ReadItem = std::variant<GetAsked, ListAsked>;

// Every function answers the items that it does not return; rows of returned items are locked by other transactions.

// REQUIRES: no item has an idempotency key.
void write_creates(JobDesk& desk, std::vector<CreateItem> items);
// Returns items whose key another transaction holds; the others are created.
std::vector<CreateItem> write_keyed_creates(JobDesk& desk, std::vector<CreateItem> items);
// A first try waits a moment for locks; a last one answers every item and returns none.
enum class Try { first, first_and_last, second, last };
std::vector<ChangeItem> write_changes(JobDesk& desk, std::vector<ChangeItem> items, Try which);
// Writes acks, nacks and extensions. A returned item has only the leases whose rows are locked; its `done` merges their
// replies with those of the other leases. `node`: name of the node, stored with the outcome.
std::vector<LeaseItem> write_leases(JobDesk& desk, const std::string& node, std::vector<LeaseItem> items);
// The same for one item, which waits for locked rows.
void write_locked_leases(JobDesk& desk, const std::string& node, LeaseItem item);
// Answers an item that write_leases() returned with `busy`.
void leave_locked(LeaseItem item);
void answer_reads(JobDesk& desk, std::vector<ReadItem> items);

void refuse(ChangeItem& item, const Error& error);

}  // namespace tocsin
