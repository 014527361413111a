// tocsin job ...: single jobs and lists of them.
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/duration.h"
#include "cli/print.h"
#include "cli/table.h"

namespace tocsin {
namespace {

// When a job is due: as a moment or as a time from now.
struct WhenOptions {
  std::string at;
  std::string in;

  void write_to(Json& body) const {
    if (at.empty() == in.empty()) throw BadUsage("say when: either --at TIME or --in TIME");
    if (at.empty())
      body["delay_ms"] = parse_duration(in)->count();
    else
      body["action_time"] = at;
  }
};

void add_when_options(CLI::App& command, WhenOptions& when) {
  command.add_option("--at", when.at, "Due at 2026-03-01T12:00:00Z (RFC 3339)")->option_text("TIME");
  add_duration(command, "--in", when.in, "Due after this time: 500ms, 15m, 24h, 7d");
}

struct JobOptions : ClientOptions {
  std::string job_id;
  WhenOptions when;
};

std::string job_path(const std::string& job_id, const std::string& verb = "") {
  return "/v1/jobs/" + job_id + (verb.empty() ? "" : "/" + verb);
}

void print_job(const Json& job) { print_record(std::cout, job, screen_width()); }

std::string due(const Json& job);

// "due ...", or what became of it.
std::string state(const Json& job) {
  const std::string status = cell(job, "status");
  return status == "pending" ? "due " + due(job) : "is " + status;
}

std::string due(const Json& job) {
  const auto at = job.find("action_time");
  return at != job.end() && at->is_string() ? readable_time(at->get<std::string>(), true) : "-";
}

// ---- create

struct CreateOptions : JobOptions {
  std::string type, biz_id, attribute, key, on_conflict;
  int max_attempts = 0;
};

// The attribute goes out as it was written: read and written again, a number of many digits would lose some.
std::string with_attribute(const Json& body, const std::string& attribute) {
  std::string text = to_text(body);
  if (attribute.empty()) return text;
  text.back() = ',';
  return text + "\"attribute\":" + json_argument(attribute, "--attribute") + "}";
}

int create(CreateOptions& options) {
  Json body = {{"biz_type", options.type}, {"biz_id", options.biz_id}};
  options.when.write_to(body);
  if (options.max_attempts > 0) body["max_attempts"] = options.max_attempts;
  if (!options.key.empty()) body["idempotency_key"] = options.key;
  if (!options.on_conflict.empty()) body["on_conflict"] = options.on_conflict;

  const RestReply reply =
      RestClient(options.connection).call_text("POST", "/v1/jobs", with_attribute(body, options.attribute));
  if (!reply.ok()) throw_problem(reply);
  if (options.json)
    print_json(std::cout, reply);
  else
    std::cout << (reply.status == 201 ? "created " : "exists already: ") << cell(reply.body, "job_id") << ", "
              << state(reply.body) << '\n';
  return 0;
}

void add_create(CLI::App& jobs, Chosen& chosen) {
  auto options = std::make_shared<CreateOptions>();
  CLI::App* command = add_command(jobs, "create", "Create a job",
                                  "Examples:\n"
                                  "  tocsin job create --type order.unpaid --id 1234 --in 15m\n"
                                  "  tocsin job create --type ticket.idle --id T-7 --at 2026-03-01T12:00:00Z \\\n"
                                  "      --attribute '{\"level\":2}' --key idle --on-conflict replace");
  command->add_option("--type", options->type, "What kind of timeout (required)")->required()->option_text("NAME");
  command->add_option("--id,--biz-id", options->biz_id, "Your key: order, ticket, ... (required)")
      ->required()
      ->option_text("ID");
  add_when_options(*command, options->when);
  command->add_option("--attribute", options->attribute, "Data for the handler; - reads stdin")
      ->check([](const std::string& text) { return text.empty() ? "is empty: leave it out, or write null" : ""; })
      ->option_text("JSON|@FILE");
  command->add_option("--key", options->key, "Idempotency key")->option_text("KEY");
  command->add_option("--on-conflict", options->on_conflict, "keep, replace, earliest, latest or reject")
      ->check(CLI::IsMember({"keep", "replace", "earliest", "latest", "reject"}))
      ->option_text("RULE");
  add_number(*command, "--max-attempts", options->max_attempts, "Instead of the type's limit, 1 to 1000", 1, 1000);
  add_client_options(*command, *options);
  on_run(command, chosen, options, create);
}

// ---- get, reschedule, run

int get(JobOptions& options) {
  const RestReply job = RestClient(options.connection).get_reply(job_path(options.job_id));
  options.json ? print_json(std::cout, job) : print_job(job.body);
  return 0;
}

// A verb on one job: answered with the job as it is now, or with a refusal that names its state.
int change(const JobOptions& options, const std::string& verb, const Json& body, const std::string& done) {
  const RestReply reply =
      RestClient(options.connection).call("POST", job_path(options.job_id, verb), body.is_null() ? nullptr : &body);
  const bool is_refused = reply.status == 409 && reply.body.is_object() && reply.body.contains("result");
  if (!reply.ok() && !is_refused) throw_problem(reply);
  if (options.json) {
    print_json(std::cout, reply);
    return is_refused ? 1 : 0;
  }
  const auto job = reply.body.find("job");
  const Json& now = job != reply.body.end() && job->is_object() ? *job : reply.body;
  if (is_refused)
    throw Failure("cannot " + verb + " job " + options.job_id + ": it is " + cell(now, "status") + ". " +
                  problem_text(reply));
  std::cout << "job " << options.job_id << " is " << done << (verb == "reschedule" ? " to " + due(now) : "") << '\n';
  return 0;
}

int reschedule(JobOptions& options) {
  Json body = Json::object();
  options.when.write_to(body);
  return change(options, "reschedule", body, "rescheduled");
}

int run_now(JobOptions& options) { return change(options, "run", Json(), "due now"); }

CLI::App* add_single(CLI::App& jobs, Chosen& chosen, const char* name, const char* summary, const char* footer,
                     int (*run)(JobOptions&), bool takes_time = false) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* command = add_command(jobs, name, summary, footer);
  command->add_option("JOB_ID", options->job_id, "The job")->required()->check(not_a_job_id)->option_text(" ");
  if (takes_time) add_when_options(*command, options->when);
  add_client_options(*command, *options);
  on_run(command, chosen, options, run);
  return command;
}

// ---- list

struct ListOptions : ClientOptions {
  std::string type, biz_id, status, from, to, cursor;
  int limit = 100;
  bool all = false;
};

void print_jobs(const Json& jobs) {
  using Align = Column::Align;
  Table table({{"JOB", Align::right},
               {"TYPE", Align::left, true},
               {"BIZ ID", Align::left, true},
               {"STATUS"},
               {"ACTION TIME"},
               {"TRIES", Align::right}});
  for (const Json& job : jobs)
    table.add({cell(job, "job_id"), cell(job, "biz_type"), cell(job, "biz_id"), cell(job, "status"),
               cell(job, "action_time"), cell(job, "attempts") + "/" + cell(job, "max_attempts")});
  if (table.empty())
    std::cout << "no jobs\n";
  else
    table.print(std::cout, screen_width());
}

int list(ListOptions& options) {
  const Pages all = read_pages(options.connection, "/v1/jobs",
                               {{"biz_type", options.type},
                                {"biz_id", options.biz_id},
                                {"status", options.status},
                                {"from", options.from},
                                {"to", options.to},
                                {"limit", std::to_string(options.limit)},
                                {"cursor", options.cursor}},
                               options.all);
  note_missing(std::cerr, {{"missing", all.missing}});
  if (options.json) {
    std::cout << all.text << '\n';
    return 0;
  }
  print_jobs(all.items);
  if (!all.next_cursor.empty())
    std::cout << "There are more: --all, or --cursor " << cell(Json(all.next_cursor)) << '\n';
  return 0;
}

void add_list(CLI::App& jobs, Chosen& chosen) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command = add_command(jobs, "list", "List jobs, newest first",
                                  "Examples:\n"
                                  "  tocsin job list --status dead --type order.unpaid\n"
                                  "  tocsin job list --id 1234 --json");
  command->add_option("--type", options->type, "Only of this type")->check(not_blank)->option_text("NAME");
  command->add_option("--id,--biz-id", options->biz_id, "Only of this key")->check(not_blank)->option_text("ID");
  command->add_option("--status", options->status, "pending, running, done, cancelled or dead")
      ->check(CLI::IsMember({"pending", "running", "done", "cancelled", "dead"}))
      ->option_text("STATUS");
  command->add_option("--from", options->from, "Action time not before (RFC 3339)")
      ->check(not_blank)
      ->option_text("TIME");
  command->add_option("--to", options->to, "Action time before (RFC 3339)")->check(not_blank)->option_text("TIME");
  add_number(*command, "--limit", options->limit, "Jobs per page, 1 to 1000 (100)", 1, 1000);
  command->add_option("--cursor", options->cursor, "Continue an earlier list")->option_text("CURSOR");
  command->add_flag("--all", options->all, "Every page, not only the first");
  add_client_options(*command, *options);
  on_run(command, chosen, options, list);
}

// ---- cancel

struct CancelOptions : ClientOptions {
  std::vector<std::string> job_ids;
  std::string biz_id, type;
};

// What has become of jobs, by job, in the order in which the server named them first.
class CancelResults {
 public:
  // A later answer names again what an earlier one cancelled, as finished. Any other result is replaced: a locked job
  // may be cancelled by the next call.
  void add(const std::string& job_id, const std::string& result) {
    const auto [at, is_new] = at_.try_emplace(job_id, jobs_.size());
    if (is_new) jobs_.push_back({job_id, ""});
    std::string& known = jobs_[at->second].second;
    if (known == "cancelled") return;
    known = result;
    cancelled_ += result == "cancelled";
  }
  std::size_t cancelled() const { return cancelled_; }
  bool have_any() const { return !jobs_.empty(); }

  // Every job is cancelled. `may_be_finished`: or had ended before, but at least one is cancelled.
  bool are_done(bool may_be_finished) const {
    const auto is_done = [&](const auto& job) {
      return job.second == "cancelled" || (may_be_finished && job.second == "finished");
    };
    return std::ranges::all_of(jobs_, is_done) && (cancelled_ > 0 || !may_be_finished);
  }

  void print(std::ostream& out) const {
    Table table({{"JOB", Column::Align::right}, {"RESULT"}});
    for (const auto& [job_id, result] : jobs_) table.add({job_id, words(result)});
    table.print(out, screen_width());
  }

 private:
  std::vector<std::pair<std::string, std::string>> jobs_;  // with their results
  std::map<std::string, std::size_t> at_;                  // where a job is in `jobs_`
  std::size_t cancelled_ = 0;
};

int cancel_many(const CancelOptions& options) {
  Json body = Json::object();
  if (options.biz_id.empty()) {
    body["job_ids"] = options.job_ids;
  } else {
    body["biz_id"] = options.biz_id;
    if (!options.type.empty()) body["biz_type"] = options.type;
  }
  RestClient rest(options.connection);
  CancelResults results;
  Json missing = Json::array();  // of the last answer
  bool is_more = false, has_more_finished = false;
  // One answer covers 10,000 jobs of a key at most, and says when there are more.
  for (std::size_t before = 0;; before = results.cancelled()) {
    const RestReply reply = rest.send_reply("POST", "/v1/jobs/cancel", body);
    for (const auto& [result, ids] : reply.body.items()) {
      if (!ids.is_array() || result == "missing") continue;
      for (const Json& id : ids) results.add(cell(id), result);
    }
    if (options.json) print_json(std::cout, reply);
    missing = reply.body.value("missing", Json::array());
    has_more_finished = has_more_finished || reply.body.value("more_finished", false);
    is_more = reply.body.value("more", false);
    if (!is_more || results.cancelled() == before) break;
  }
  if (!options.json && !results.have_any()) std::cout << (has_more_finished ? "no live jobs\n" : "no jobs\n");
  if (!options.json && results.have_any()) results.print(std::cout);
  if (!options.json && has_more_finished) std::cout << "More jobs of this key have ended than are looked at.\n";
  const bool is_complete = !note_missing(std::cerr, {{"missing", missing}});
  if (is_more) std::cerr << "Live jobs of this key are left: ask again.\n";
  return is_complete && !is_more && results.are_done(!options.biz_id.empty()) ? 0 : 1;
}

int cancel(CancelOptions& options) {
  if (options.job_ids.empty() == options.biz_id.empty()) throw BadUsage("give either job ids or --biz-id");
  if (!options.type.empty() && options.biz_id.empty()) throw BadUsage("--type goes with --biz-id");
  if (options.job_ids.size() != 1) return cancel_many(options);
  JobOptions single;
  static_cast<ClientOptions&>(single) = options;
  single.job_id = options.job_ids.front();
  return change(single, "cancel", Json(), "cancelled");
}

void add_cancel(CLI::App& jobs, Chosen& chosen) {
  auto options = std::make_shared<CancelOptions>();
  CLI::App* command = add_command(jobs, "cancel", "Cancel pending jobs",
                                  "Exits 0 when every job that was named is cancelled; with --biz-id, when\n"
                                  "one was cancelled and no live job of the key may be left: one that runs or\n"
                                  "is locked, or that a database may hold which does not answer.\n"
                                  "Examples:\n"
                                  "  tocsin job cancel 1088 2113\n"
                                  "  tocsin job cancel --biz-id 1234 --type order.unpaid");
  command->add_option("JOB_ID", options->job_ids, "The jobs")->check(not_a_job_id)->option_text("...");
  command->add_option("--biz-id,--id", options->biz_id, "All jobs of this key")->check(not_blank)->option_text("ID");
  command->add_option("--type", options->type, "With --biz-id: only of this type")
      ->check(not_blank)
      ->option_text("NAME");
  add_client_options(*command, *options);
  on_run(command, chosen, options, cancel);
}

// ---- retry

struct RetryOptions : JobOptions {
  std::string type, from, to, reason;
  int limit = 0;
  double rate_per_s = 0;
};

int retry(RetryOptions& options) {
  if (options.job_id.empty() == options.type.empty()) throw BadUsage("give either a job id or --type");
  if (options.type.empty()) return change(options, "retry", Json(), "pending again");
  Json body = {{"biz_type", options.type}};
  if (!options.from.empty()) body["from"] = options.from;
  if (!options.to.empty()) body["to"] = options.to;
  if (options.limit > 0) body["limit"] = options.limit;
  if (options.rate_per_s > 0) body["rate_per_s"] = options.rate_per_s;
  if (!options.reason.empty()) body["reason"] = options.reason;
  const RestReply reply = RestClient(options.connection).send_reply("POST", "/v1/jobs/retry", body);
  const bool is_complete = !note_missing(std::cerr, reply.body);
  options.json ? print_json(std::cout, reply) : print_record(std::cout, reply.body, screen_width());
  return is_complete ? 0 : 1;
}

void add_retry(CLI::App& jobs, Chosen& chosen) {
  auto options = std::make_shared<RetryOptions>();
  CLI::App* command = add_command(jobs, "retry", "Make dead jobs pending again",
                                  "With --type, exits 1 when a database did not answer: its dead jobs may be\n"
                                  "left, or retried without being counted.\n"
                                  "Examples:\n"
                                  "  tocsin job retry 1088\n"
                                  "  tocsin job retry --type order.unpaid --limit 500 --rate 20");
  command->add_option("JOB_ID", options->job_id, "One dead job")->check(not_a_job_id)->option_text(" ");
  command->add_option("--type", options->type, "Dead jobs of this type, oldest first")->option_text("NAME");
  command->add_option("--from", options->from, "Died not before (RFC 3339)")->option_text("TIME");
  command->add_option("--to", options->to, "Died before (RFC 3339)")->option_text("TIME");
  add_number(*command, "--limit", options->limit, "At most so many, 1 to 10000 (1000)", 1, 10'000);
  add_number(*command, "--rate", options->rate_per_s, "So many become due per second", 0.001, 1e6);
  command->add_option("--reason", options->reason, "With --type: why; kept in the audit log")->option_text("TEXT");
  add_client_options(*command, *options);
  on_run(command, chosen, options, retry);
}

}  // namespace

void add_job_commands(CLI::App& root, Chosen& chosen) {
  CLI::App* jobs = add_command(root, "job", "Create, read, cancel and move jobs", "");
  jobs->require_subcommand(1);
  add_create(*jobs, chosen);
  add_single(*jobs, chosen, "get", "Show one job", "", get);
  add_list(*jobs, chosen);
  add_cancel(*jobs, chosen);
  add_single(*jobs, chosen, "reschedule", "Give a pending job a new deadline",
             "Example:\n"
             "  tocsin job reschedule 1088 --in 24h",
             reschedule, /*takes_time=*/true);
  add_single(*jobs, chosen, "run", "Make a pending job due now", "", run_now);
  add_retry(*jobs, chosen);
}

}  // namespace tocsin
