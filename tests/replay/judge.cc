#include "replay/judge.h"

#include <algorithm>
#include <unordered_map>

namespace tocsin::replay {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

class Judge {
 public:
  explicit Judge(DataTime cut) : cut_(cut) {}

  void look_at(const Job& job, const std::vector<Delivery>& deliveries) {
    check_promises(job, deliveries);
    check_truth(job, deliveries);
    measure(job, deliveries);
  }

  void unknown(const Delivery& delivery) { blame("fired, but no job of this replay", delivery.biz_id); }

  Judgement finish() {
    for (Spread* spread : {&result_.lateness, &result_.create_lag, &result_.cancel_lag})
      std::sort(spread->ms.begin(), spread->ms.end());
    return std::move(result_);
  }

 private:
  void blame(const std::string& what, const std::string& id) { result_.violations[what].push_back(id); }

  // What the node itself said, whatever the records say.
  void check_promises(const Job& job, const std::vector<Delivery>& deliveries) {
    const std::string& id = job.request.id;
    if (job.job_id == 0) return blame("never created", id);
    if (deliveries.size() > 1) blame("fired more than once", id);
    for (const Delivery& delivery : deliveries) {
      if (delivery.at < job.due) blame("fired early", id);
      if (delivery.job_id != job.job_id) blame("fired under another job id", id);
    }
    switch (job.answer) {
      case CancelAnswer::none:
        if (job.wants_cancel) blame("cancel without an answer", id);
        if (deliveries.empty()) blame("not cancelled, and not fired", id);
        break;
      case CancelAnswer::cancelled:
        if (!deliveries.empty()) blame("fired though its cancel was acknowledged", id);
        break;
      case CancelAnswer::running:
      case CancelAnswer::finished:
        if (deliveries.empty()) blame("not cancelled for it was running or finished, and not fired", id);
        break;
      case CancelAnswer::not_found:
        blame("unknown at its cancel", id);
    }
  }

  // What the records say. A deadline after the cut never came in this replay: only the promises bind then.
  void check_truth(const Job& job, const std::vector<Delivery>& deliveries) {
    const Request& request = job.request;
    if (request.target > cut_) {
      ++result_.counts["due after the cut"];
      return;
    }
    const bool has_fired = !deliveries.empty();
    switch (request.truth) {
      case Truth::fire:
        ++result_.counts[has_fired ? "must fire: fired" : "must fire: silent"];
        if (!has_fired) blame("must fire, did not", request.id);
        break;
      case Truth::cancel:
        ++result_.counts[has_fired ? "must not fire: fired" : "must not fire: silent"];
        if (has_fired) blame("must not fire, did", request.id);
        break;
      case Truth::either:
        ++result_.counts[has_fired ? "too close to tell: fired" : "too close to tell: silent"];
        return;  // nor does the city's verdict bind so close to the deadline
    }
    // A request may be published as OVERDUE and have been closed, but late; one published as ONTIME binds only once
    // closed.
    const bool is_closed_in_time = request.closed && *request.closed <= request.target;
    if (request.published == Published::overdue) {
      ++result_.counts[has_fired ? "published OVERDUE: fired" : "published OVERDUE: silent"];
      if (!has_fired) blame("published as OVERDUE, did not fire", request.id);
    } else if (request.published == Published::ontime && is_closed_in_time) {
      ++result_.counts[has_fired ? "published ONTIME, closed: fired" : "published ONTIME, closed: silent"];
      if (has_fired) blame("published as ONTIME and closed in time, fired", request.id);
    }
  }

  void measure(const Job& job, const std::vector<Delivery>& deliveries) {
    if (job.job_id == 0) return;
    result_.create_lag.ms.push_back(Milliseconds(job.created - job.opens).count());
    if (job.closes && job.answer != CancelAnswer::none)
      result_.cancel_lag.ms.push_back(Milliseconds(job.answered - std::max(*job.closes, job.created)).count());
    // A job created after its time is late by our fault, not the node's.
    if (!deliveries.empty() && job.created <= job.due)
      result_.lateness.ms.push_back(Milliseconds(deliveries.front().at - job.due).count());
  }

  const DataTime cut_;
  Judgement result_;
};

}  // namespace

Judgement judge(const std::vector<Job>& jobs, const std::vector<Delivery>& deliveries, DataTime cut) {
  std::unordered_map<std::string, std::vector<Delivery>> by_id;
  for (const Delivery& delivery : deliveries) by_id[delivery.biz_id].push_back(delivery);
  Judge the_judge(cut);
  for (const Job& job : jobs) {
    const auto found = by_id.find(job.request.id);
    the_judge.look_at(job, found == by_id.end() ? std::vector<Delivery>{} : found->second);
    if (found != by_id.end()) by_id.erase(found);
  }
  for (const auto& [id, rest] : by_id) the_judge.unknown(rest.front());
  return the_judge.finish();
}

}  // namespace tocsin::replay
