#include "service/request_batches.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <tuple>

#include "ports/row_refusal.h"

namespace tocsin {
namespace {

// Errors of creates for which writing them in smaller parts does not help.
bool concerns_all(const Error& error) {
  return error.code == ErrorCode::in_doubt || (error.code == ErrorCode::unavailable && !is_refused_row(error));
}

using CreateSpan = std::span<CreateItem>;

Result<std::vector<CreateReply>> create_all(ClientStore& client_store, CreateSpan items) {
  std::vector<NewJob> jobs;
  jobs.reserve(items.size());
  for (const CreateItem& item : items) jobs.push_back(item.request);
  return client_store.create(jobs, CreateMode::each_if_free);
}

constexpr std::size_t kMostCreates = 500;  // in one statement

// What write_in_turn() leaves unanswered, in the order of the items.
struct Unanswered {
  std::vector<CreateItem> unreached;  // the tries were used up before
  std::vector<CreateItem> held;
};

// Writes the items in their order, some at a time. Fewer, where they meet a held key, until it is alone; more again
// behind it. So keys that are all held cost one try each, and a single one among many costs the logarithm of their
// number. The same finds a create that the database refuses. After kMostRefusedInARow that it cannot write now, the
// rest is answered untried; values that it does not take are no sign that it would refuse the others.
void write_in_turn(ClientStore& client_store, CreateSpan items, int tries, Unanswered& rest) {
  std::size_t size = kMostCreates;
  std::size_t fault_before = 0;  // an item before this index is at fault, if it is greater than `begin`
  int unwritable_in_a_row = 0;   // each alone
  for (std::size_t begin = 0; begin < items.size();) {
    if (tries == 0) {
      std::ranges::move(items.subspan(begin), std::back_inserter(rest.unreached));
      return;
    }
    const CreateSpan part = items.subspan(begin, std::min(size, items.size() - begin));
    size = part.size();
    auto replies = create_all(client_store, part);
    if (replies) {
      for (std::size_t i = 0; i < size; ++i) part[i].done(std::move((*replies)[i]));
      unwritable_in_a_row = 0;
      begin += size;
      size = begin < fault_before ? std::max<std::size_t>((fault_before - begin) / 2, 1) : 2 * size;
      size = std::min(size, kMostCreates);
      continue;
    }
    const Error& error = replies.error();
    if (concerns_all(error)) {
      for (const CreateItem& item : part) item.done(error);
      begin += size;
      size = kMostCreates;
      continue;
    }
    const bool is_held = error.code == ErrorCode::conflict && part.front().request.idempotency_key.has_value();
    if (is_held) --tries;
    if (size > 1) {
      fault_before = begin + size;
      size /= 2;
      continue;
    }
    if (is_held) {
      part.front().was_held = true;
      rest.held.push_back(std::move(part.front()));
    } else {
      part.front().done(error);
    }
    fault_before = ++begin;
    if (error.code == ErrorCode::unavailable && ++unwritable_in_a_row == kMostRefusedInARow) {
      for (const CreateItem& item : items.subspan(begin)) item.done(untried(error));
      return;
    }
  }
}

// Moves items behind the others if their key was held before, also for another item, so that items of one key stay in
// their order. Returns the number of the others.
std::size_t move_held_last(std::vector<CreateItem>& items) {
  const auto key = [](const CreateItem& item) {
    const NewJob& job = item.request;
    return std::tuple(job.type_id, job.biz_id, job.idempotency_key);
  };
  std::set<std::tuple<TypeId, std::string, std::optional<std::string>>> held;
  for (const CreateItem& item : items)
    if (item.was_held) held.insert(key(item));
  if (held.empty()) return items.size();
  const auto last =
      std::stable_partition(items.begin(), items.end(), [&](const auto& item) { return !held.contains(key(item)); });
  return static_cast<std::size_t>(last - items.begin());
}

ChangeBatch batch_of(const std::vector<ChangeItem>& items, LockedRowAttempt which) {
  ChangeBatch batch;
  batch.is_retry = which == LockedRowAttempt::second || which == LockedRowAttempt::last;
  for (const ChangeItem& item : items) {
    if (const auto* cancel = std::get_if<CancelAsked>(&item.what)) batch.cancels.push_back(cancel->request);
    if (const auto* key = std::get_if<KeyCancelAsked>(&item.what)) batch.key_cancels.push_back(key->request);
    if (const auto* change = std::get_if<ChangeAsked>(&item.what)) batch.changes.push_back(change->request);
  }
  return batch;
}

bool is_locked(const CancelReply& reply) { return reply.kind == CancelReply::Kind::locked; }
bool is_locked(const ChangeReply& reply) { return reply.kind == ChangeReply::Kind::locked; }
// If some jobs of a key were cancelled, the request is answered with them: a second try would not name them again.
bool is_locked(const KeyCancelReply& reply) { return !reply.locked.empty() && reply.cancelled.empty(); }

// False: the row is locked, and the item may be tried again.
template <class Request, class Reply>
bool answered(const PendingRequest<Request, Reply>& asked, Result<Reply>& reply, LockedRowAttempt which) {
  if (reply && is_locked(*reply) && (which == LockedRowAttempt::first || which == LockedRowAttempt::second))
    return false;
  asked.done(std::move(reply));
  return true;
}

constexpr std::size_t kMostLeases = 1'000;  // in one statement

// The answer to a call. Of leases that are all refused the caller is told why.
Result<std::vector<LeaseResult>> settled(std::vector<LeaseResult> replies) {
  const auto is_refused = [](const LeaseResult& reply) { return reply.kind == LeaseReply::refused; };
  if (replies.empty() || !std::ranges::all_of(replies, is_refused)) return replies;
  return Error{ErrorCode::unavailable, replies.front().why, kRefused};
}

// True: the call is answered. False: leases of it are locked. Then `asked` keeps only these, and its `done` adds the
// replies of the others to theirs.
template <class Request>
bool answered(PendingRequest<std::vector<Request>, std::vector<LeaseResult>>& asked, std::vector<LeaseResult> replies) {
  std::vector<Request> locked;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].kind != LeaseReply::busy) continue;
    locked.push_back(asked.request[i]);
    indices.push_back(i);
  }
  if (indices.empty()) return asked.done(settled(std::move(replies))), true;
  if (indices.size() == replies.size()) return false;
  asked.request = std::move(locked);
  asked.done = [all = std::move(replies), indices,
                done = std::move(asked.done)](Result<std::vector<LeaseResult>> rest) {
    std::vector<LeaseResult> merged = all;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (rest) {
        merged[indices[i]] = (*rest)[i];
      } else if (rest.error().code == ErrorCode::in_doubt) {
        merged[indices[i]].kind = LeaseReply::in_doubt;
      } else if (rest.error().field == kRefused) {
        merged[indices[i]] = {LeaseReply::refused, 0, rest.error().message};
      }
    }
    done(settled(std::move(merged)));
  };
  return false;
}

// Runs `statement` for the leases of calls of one kind, up to kMostLeases at a time. `answer` gets each call with its
// part of the replies; the calls of a statement that fails are answered with its Error.
template <class Kind, class Statement, class Answer>
void run_together(std::vector<LeaseItem>& calls, const Statement& statement, const Answer& answer) {
  const auto asked = [&](std::size_t i) -> Kind& { return std::get<Kind>(calls[i].what); };
  for (std::size_t begin = 0, end = 0; begin < calls.size(); begin = end) {
    decltype(Kind::request) all;
    for (; end < calls.size() && (end == begin || all.size() + asked(end).request.size() <= kMostLeases); ++end)
      std::ranges::copy(asked(end).request, std::back_inserter(all));
    const auto replies = statement(all);
    for (std::size_t i = begin, next = 0; i < end; ++i) {
      if (!replies) {
        asked(i).done(replies.error());
        continue;
      }
      const auto first = replies->begin() + static_cast<std::ptrdiff_t>(next);
      next += asked(i).request.size();
      answer(calls[i], std::vector(first, replies->begin() + static_cast<std::ptrdiff_t>(next)));
    }
  }
}

// Locked calls go to `locked`.
template <class Kind, class Statement>
void write_together(std::vector<LeaseItem>& calls, const Statement& statement, std::vector<LeaseItem>& locked) {
  run_together<Kind>(calls, statement, [&](LeaseItem& call, std::vector<LeaseResult> replies) {
    if (!answered(std::get<Kind>(call.what), std::move(replies))) locked.push_back(std::move(call));
  });
}

}  // namespace

std::vector<LeaseItem> write_leases(ClientStore& client_store, const std::string& node, std::vector<LeaseItem> items) {
  std::vector<LeaseItem> outcomes, extensions, reads, locked;
  for (LeaseItem& item : items) {
    auto& kind = std::holds_alternative<OutcomesAsked>(item.what)     ? outcomes
                 : std::holds_alternative<ExtensionsAsked>(item.what) ? extensions
                                                                      : reads;
    kind.push_back(std::move(item));
  }
  run_together<LeasedAsked>(
      reads, [&](const auto& all) { return client_store.leased(all); },
      [](LeaseItem& call, auto leased) { std::get<LeasedAsked>(call.what).done(std::move(leased)); });
  const auto finish = [&](const auto& all) { return client_store.finish_leased(all, node); };
  const auto extend = [&](const auto& all) { return client_store.extend(all); };
  write_together<OutcomesAsked>(outcomes, finish, locked);
  write_together<ExtensionsAsked>(extensions, extend, locked);
  return locked;
}

void refuse(LeaseItem& item, const Error& error) {
  std::visit([&](auto& asked) { asked.done(error); }, item.what);
}

std::vector<CreateItem> write_creates(ClientStore& client_store, std::vector<CreateItem> items, int tries) {
  const std::size_t others = move_held_last(items);
  Unanswered rest;
  write_in_turn(client_store, CreateSpan(items).first(others), tries, rest);
  write_in_turn(client_store, CreateSpan(items).subspan(others), rest.unreached.empty() ? tries : tries / 4, rest);
  std::ranges::move(rest.held, std::back_inserter(rest.unreached));
  return std::move(rest.unreached);
}

void refuse(ChangeItem& item, const Error& error) {
  std::visit([&](auto& asked) { asked.done(error); }, item.what);
}

namespace {

// Takes the retries of dead jobs out of the batch.
std::vector<ChangeItem> take_retries(std::vector<ChangeItem>& items) {
  const auto first = std::stable_partition(items.begin(), items.end(), [](const ChangeItem& item) {
    return !std::holds_alternative<RetryAsked>(item.what);
  });
  std::vector<ChangeItem> retries(std::make_move_iterator(first), std::make_move_iterator(items.end()));
  items.erase(first, items.end());
  return retries;
}

// Writes retries of dead jobs by statements of their own, because their rows are in history. Returns the items that may
// be tried again.
std::vector<ChangeItem> write_retries(ClientStore& client_store, std::vector<ChangeItem> items,
                                      LockedRowAttempt which) {
  if (items.empty()) return {};
  std::vector<JobId> ids;
  ids.reserve(items.size());
  for (const ChangeItem& item : items) ids.push_back(std::get<RetryAsked>(item.what).request);
  auto replies = client_store.retry_each(ids);
  std::vector<ChangeItem> locked;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ChangeItem& item = items[i];
    if (!replies)
      refuse(item, replies.error());
    else if (!answered(std::get<RetryAsked>(item.what), (*replies)[i], which))
      locked.push_back(std::move(item));
  }
  return locked;
}

// REQUIRES: no retries.
std::vector<ChangeItem> write_together(ClientStore& client_store, std::vector<ChangeItem> items,
                                       LockedRowAttempt which) {
  if (items.empty()) return {};
  std::vector<ChangeItem> locked;
  auto replies = client_store.change_together(batch_of(items, which));
  if (!replies) {
    for (ChangeItem& item : items) refuse(item, replies.error());
    return locked;
  }
  std::size_t cancels = 0, keys = 0, changes = 0;
  for (ChangeItem& item : items) {
    bool is_answered = false;
    if (const auto* cancel = std::get_if<CancelAsked>(&item.what))
      is_answered = answered(*cancel, replies->cancels[cancels++], which);
    else if (const auto* key = std::get_if<KeyCancelAsked>(&item.what))
      is_answered = answered(*key, replies->key_cancels[keys++], which);
    else
      is_answered = answered(std::get<ChangeAsked>(item.what), replies->changes[changes++], which);
    if (!is_answered) locked.push_back(std::move(item));
  }
  return locked;
}

}  // namespace

// Retries come last, because they may wait for keys that other transactions hold.
std::vector<ChangeItem> write_changes(ClientStore& client_store, std::vector<ChangeItem> items,
                                      LockedRowAttempt which) {
  std::vector<ChangeItem> retries = take_retries(items);
  std::vector<ChangeItem> locked = write_together(client_store, std::move(items), which);
  std::ranges::move(write_retries(client_store, std::move(retries), which), std::back_inserter(locked));
  return locked;
}

std::size_t most_rows(const ReadItem& item) {
  const auto* list = std::get_if<ListAsked>(&item);
  return list ? static_cast<std::size_t>(list->request.limit) : 1;
}

void answer_reads(ClientStore& client_store, std::vector<ReadItem> items) {
  std::vector<JobId> ids;
  std::vector<KeyQuery> queries;
  for (const ReadItem& item : items) {
    if (const auto* get = std::get_if<GetAsked>(&item)) ids.push_back(get->request);
    if (const auto* list = std::get_if<ListAsked>(&item)) queries.push_back(list->request);
  }
  using Jobs = std::vector<std::optional<Job>>;
  using Lists = std::vector<KeyList>;
  Result<Jobs> jobs = ids.empty() ? Result<Jobs>(Jobs{}) : client_store.find(ids);
  Result<Lists> lists = Lists{};
  std::size_t got = 0, listed = 0;
  for (const ReadItem& item : items)
    if (const auto* get = std::get_if<GetAsked>(&item))
      get->done(jobs ? Result<std::optional<Job>>(std::move((*jobs)[got++])) : jobs.error());
  if (!queries.empty()) lists = client_store.list_keys(queries);
  for (const ReadItem& item : items)
    if (const auto* list = std::get_if<ListAsked>(&item))
      list->done(lists ? Result<KeyList>(std::move((*lists)[listed++])) : lists.error());
}

}  // namespace tocsin
