#include "api/type_lookup.h"

#include <utility>

#include "api/context.h"

namespace tocsin {
namespace {

constexpr std::size_t kMostLookups = 10'000;  // more than arrive within a read of some milliseconds

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void TypeLookup::ask(Question question, Done done) {
  Backend& backend = context_.backend;
  if (const auto why = backend.unavailable_reason(0)) return done(context_.problem_of(*why, 0));
  if (!backend.is_answering(0))
    return done(context_.problem_of({ErrorCode::unavailable, "the registry of types does not answer", ""}, 0));
  {
    MutexLock lock(mutex_);
    if (waiting_.size() >= kMostLookups) {
      lock.unlock();
      return done(ApiContext::busy());
    }
    waiting_.push_back({std::move(question), std::move(done)});
    // A read that was posted and has not begun takes this question along; a read that has begun is followed by another.
    if (std::exchange(is_reading_, true)) return;
  }
  post_read();
}

std::vector<TypeLookup::Waiting> TypeLookup::take() {
  MutexLock lock(mutex_);
  return std::exchange(waiting_, {});
}

// A post for each read, so that other work has its turn between them.
void TypeLookup::post_read() {
  while (true) {
    {
      MutexLock lock(mutex_);
      if (waiting_.empty()) {
        is_reading_ = false;
        return;
      }
    }
    if (context_.backend.post(0, [this](Stores& control) { read(control); })) return;
    for (const Waiting& each : take()) each.done(ApiContext::busy());
  }
}

void TypeLookup::read(Stores& control) {
  struct AtTheEnd {  // also after an exception, or no read would ever be posted again
    TypeLookup& lookup;
    ~AtTheEnd() { lookup.post_read(); }
  } at_the_end{*this};
  const std::vector<Waiting> waiting = take();
  const Status done = look_up(control, waiting);
  for (const Waiting& each : waiting)
    each.done(done ? std::nullopt : std::optional(context_.problem_of(done.error(), 0)));
}

Status TypeLookup::look_up(Stores& control, const std::vector<Waiting>& waiting) const {
  std::vector<std::string> names, any_names;
  bool is_any_there = false;
  for (const Waiting& each : waiting) {
    append(names, each.question.names);
    append(any_names, each.question.any_names);
    is_any_there = is_any_there || each.question.has_unknown_ids;
  }
  const auto look = [&](const std::vector<std::string>& list, TypeStore::Removed removed) -> Status {
    if (list.empty() || is_any_there) return Unit{};
    const auto found = control.types.has_any(list, removed);
    if (!found) return found.error();
    is_any_there = *found;
    return Unit{};
  };
  if (auto done = look(names, TypeStore::Removed::left_out); !done) return done;
  if (auto done = look(any_names, TypeStore::Removed::included); !done) return done;
  return is_any_there ? context_.backend.reload_types(control) : Unit{};
}

}  // namespace tocsin
