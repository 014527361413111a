#include "api/shared_answers.h"

#include <algorithm>
#include <map>

#include "base/mutex.h"

namespace tocsin {
namespace {

constexpr std::chrono::seconds kLongestKept{60};
// A page of a report has 300 KB and is kept. A page of jobs with large attributes has megabytes, too much to keep for
// callers that may never come.
constexpr std::size_t kLargestKept = 512 << 10;
constexpr std::size_t kMostKept = 128;  // answers; at most 64 MiB with the limit above

}  // namespace

struct SharedAnswers::State {
  struct Entry {
    SteadyTime asked_at;
    std::chrono::seconds kept;           // the greatest age that one of its readers accepts
    std::optional<HttpResponse> answer;  // nullopt: not answered yet
    std::vector<Responder> waiting;      // besides the call that asked the handler
  };

  // True: the call was answered, or will get the answer to an equal call. False: the caller must call the handler.
  bool join(const std::string& key, const Responder& respond, std::chrono::seconds max_age) {
    HttpResponse answer;
    {
      MutexLock lock(mutex);
      const SteadyTime time = now();
      std::erase_if(entries, [&](const auto& each) {
        return each.second.answer && time - each.second.asked_at > each.second.kept;
      });
      const auto found = entries.find(key);
      if (found == entries.end()) {
        if (make_place()) entries[key] = {time, max_age, {}, {}};
        return false;
      }
      Entry& entry = found->second;
      entry.kept = std::max(entry.kept, max_age);
      if (!entry.answer) {
        entry.waiting.push_back(respond);
        return true;
      }
      if (time - entry.asked_at > max_age) {  // too old for this reader; the others share its answer
        entry = {time, entry.kept, {}, {}};
        return false;
      }
      answer = *entry.answer;
    }
    respond(std::move(answer));
    return true;
  }

  // Drops the oldest answer if there are too many entries. False: none can be dropped, because all are awaited.
  bool make_place() TOCSIN_REQUIRES(mutex) {
    if (entries.size() < kMostKept) return true;
    auto oldest = entries.end();
    for (auto it = entries.begin(); it != entries.end(); ++it)
      if (it->second.answer && (oldest == entries.end() || it->second.asked_at < oldest->second.asked_at)) oldest = it;
    if (oldest == entries.end()) return false;
    entries.erase(oldest);
    return true;
  }

  // Makes copies of the response share its body.
  void answered(const std::string& key, HttpResponse& response) {
    response.share_body();
    std::vector<Responder> waiting;
    {
      MutexLock lock(mutex);
      const auto found = entries.find(key);
      // The entry was dropped (too many), and maybe another call has asked again since.
      if (found == entries.end() || found->second.answer) return;
      waiting = std::move(found->second.waiting);
      if (response.status == 200 && response.text().size() <= kLargestKept)
        found->second.answer = response;
      else
        entries.erase(found);
    }
    for (const Responder& respond : waiting) respond(response);
  }

  std::function<SteadyTime()> now;
  Mutex mutex;
  std::map<std::string, Entry> entries TOCSIN_GUARDED_BY(mutex);
};

SharedAnswers::SharedAnswers(std::function<SteadyTime()> now) : state_(std::make_shared<State>()) {
  state_->now = std::move(now);
}

SharedAnswers::Handler SharedAnswers::share(Handler handler) const {
  return [state = state_, handler = std::move(handler)](const CallPtr& call) {
    if (call->request.max_age_s < 1) return handler(call);
    const auto max_age = std::min(kLongestKept, std::chrono::seconds(call->request.max_age_s));
    const std::string key = (call->may_manage ? '+' : '-') + call->request.target;
    if (state->join(key, call->respond, max_age)) return;
    const auto first = std::make_shared<Call>(*call);
    first->respond = Responder([state, key, respond = call->respond](HttpResponse response) {
      state->answered(key, response);
      respond(std::move(response));
    });
    handler(first);
  };
}

}  // namespace tocsin
