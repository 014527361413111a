// tocsin type ...: the kinds of timeout.
#include <iostream>

#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/duration.h"
#include "cli/print.h"
#include "cli/table.h"

namespace tocsin {
namespace {

struct TypeOptions : ClientOptions {
  std::string name;
  std::string until, reason;
};

std::string type_path(const std::string& name, const std::string& verb = "") {
  return "/v1/types/" + path_part(name) + (verb.empty() ? "" : "/" + verb);
}

// ---- put

struct PutOptions : TypeOptions {
  std::string file, handler, url, secret, function, timeout, ttr;
  int max_attempts = 0, max_running = 0;
  double rate_per_s = 0;
  std::string slo_lateness;
  double slo_share = 0;
};

Json handler_of(const PutOptions& options) {
  Json handler = {{"kind", options.handler.empty() ? "webhook" : options.handler}};
  if (!options.url.empty()) handler["url"] = options.url;
  if (!options.secret.empty()) handler["secret"] = options.secret;
  if (!options.timeout.empty()) handler["timeout_ms"] = parse_duration(options.timeout)->count();
  if (!options.function.empty()) handler["function"] = options.function;
  return handler;
}

int put(PutOptions& options) {
  const bool has_handler = !options.handler.empty() || !options.url.empty();
  if (has_handler && !options.file.empty())
    throw BadUsage("--file FILE has the whole type: leave out --handler and --webhook");
  if (!has_handler && options.file.empty())
    throw BadUsage("say what runs: --handler KIND, --webhook URL or --file FILE");
  Json body;
  if (has_handler)
    body["handler"] = handler_of(options);
  else
    body = Json::parse(json_argument(options.file == "-" ? "-" : "@" + options.file, "--file"));
  if (!body.is_object()) throw BadUsage("--file: a type is a JSON object");
  if (!options.ttr.empty()) body["ttr_ms"] = parse_duration(options.ttr)->count();
  if (options.max_attempts > 0) body["max_attempts"] = options.max_attempts;
  if (options.max_running > 0) body["max_running"] = options.max_running;
  if (options.rate_per_s > 0) body["rate_per_s"] = options.rate_per_s;
  if (options.slo_lateness.empty() != (options.slo_share == 0))
    throw BadUsage("a target has two parts: --slo-lateness TIME and --slo-share SHARE");
  if (options.slo_share > 0)
    body["slo"] = {{"lateness_ms", parse_duration(options.slo_lateness)->count()}, {"share", options.slo_share}};

  const RestReply reply = RestClient(options.connection).call("PUT", type_path(options.name), &body);
  if (!reply.ok()) throw_problem(reply);
  if (options.json)
    print_json(std::cout, reply);
  else
    std::cout << (reply.status == 201 ? "created " : "stored ") << cell(Json(options.name)) << '\n';
  return 0;
}

void add_put(CLI::App& types, Chosen& chosen) {
  auto options = std::make_shared<PutOptions>();
  CLI::App* command = add_command(types, "put", "Create or replace a type",
                                  "Examples:\n"
                                  "  tocsin type put order.unpaid --webhook http://127.0.0.1:9000/hook\n"
                                  "  tocsin type put order.unpaid --handler sql --function shop.cancel_unpaid\n"
                                  "  tocsin type get order.unpaid --json > t.json\n"
                                  "  tocsin type put order.unpaid --file t.json");
  command->add_option("NAME", options->name, "Its name, like order.unpaid")
      ->required()
      ->check(not_blank)
      ->option_text(" ");
  command->add_option("--handler", options->handler, "webhook, sql, pull, cpp, noop, ...")->option_text("KIND");
  command->add_option("--webhook", options->url, "webhook: where to POST")->option_text("URL");
  command->add_option("--secret", options->secret, "webhook: signing key (whsec_...)")->option_text("SECRET");
  add_duration(*command, "--handler-timeout", options->timeout, "webhook: wait for its answer");
  command->add_option("--function", options->function, "sql: function to call")->option_text("NAME");
  add_duration(*command, "--ttr", options->ttr, "Time to run: length of a lease");
  add_number(*command, "--max-attempts", options->max_attempts, "Then the job is dead; 1 to 1000 (16)", 1, 1000);
  add_number(*command, "--max-running", options->max_running, "Jobs that run at once in the cluster", 1, 1'000'000);
  add_number(*command, "--rate", options->rate_per_s, "Starts per second", 0.001, 1e6);
  add_duration(*command, "--slo-lateness", options->slo_lateness, "Target: latest start after the deadline");
  command->add_option("--slo-share", options->slo_share, "Target: for this share of the jobs, like 0.999")
      ->check(CLI::Range(0.0, 1.0))
      ->option_text("SHARE");
  command->add_option("--file", options->file, "The whole type as JSON; - reads stdin")->option_text("FILE");
  add_client_options(*command, *options);
  on_run(command, chosen, options, put);
}

// ---- get, list, delete, pause, resume

int get(TypeOptions& options) {
  const RestReply type = RestClient(options.connection).get_reply(type_path(options.name));
  options.json ? print_json(std::cout, type) : print_record(std::cout, type.body, screen_width());
  return 0;
}

int list_types(TypeOptions& options) {
  const Pages all = read_pages(options.connection, "/v1/types", {{"limit", "1000"}}, /*are_all=*/true);
  if (options.json) {
    std::cout << all.text << '\n';
    return 0;
  }
  using Align = Column::Align;
  Table table({{"TYPE", Align::left, true}, {"HANDLER"}, {"TTR", Align::right}, {"TRIES", Align::right}, {"STATE"}});
  for (const Json& type : all.items) {
    const double ttr = type.contains("ttr_ms") && type["ttr_ms"].is_number() ? type["ttr_ms"].get<double>() : 0;
    table.add({cell(type, "name"), cell(type.value("handler", Json::object()), "kind"), format_duration(ttr),
               cell(type, "max_attempts"), type.value("paused", false) ? "paused" : "runs"});
  }
  if (table.empty())
    std::cout << "no types yet; see tocsin type put --help\n";
  else
    table.print(std::cout, screen_width());
  return 0;
}

int send(const TypeOptions& options, const std::string& method, const std::string& verb, const Json& body,
         const std::string& done) {
  const RestReply reply = RestClient(options.connection).send_reply(method, type_path(options.name, verb), body);
  if (options.json)
    print_json(std::cout, reply);
  else
    std::cout << done << ' ' << cell(Json(options.name)) << '\n';
  return 0;
}

int remove(TypeOptions& options) { return send(options, "DELETE", "", Json(), "deleted"); }
int resume(TypeOptions& options) { return send(options, "POST", "resume", Json(), "resumed"); }
int pause(TypeOptions& options) {
  Json body = Json::object();
  if (!options.until.empty()) body["until"] = options.until;
  if (!options.reason.empty()) body["reason"] = options.reason;
  return send(options, "POST", "pause", body, "paused");
}

std::shared_ptr<TypeOptions> add_simple(CLI::App& types, Chosen& chosen, const char* name, const char* summary,
                                        int (*run)(TypeOptions&)) {
  auto options = std::make_shared<TypeOptions>();
  CLI::App* command = add_command(types, name, summary, "");
  if (run != list_types)
    command->add_option("NAME", options->name, "The type")->required()->check(not_blank)->option_text(" ");
  if (run == pause) {
    command->add_option("--until", options->until, "Resume by itself then (RFC 3339)")->option_text("TIME");
    command->add_option("--reason", options->reason, "Why; kept in the audit log")->option_text("TEXT");
  }
  add_client_options(*command, *options);
  on_run(command, chosen, options, run);
  return options;
}

}  // namespace

void add_type_commands(CLI::App& root, Chosen& chosen) {
  CLI::App* types = add_command(root, "type", "Define, pause and resume kinds of timeout", "");
  types->require_subcommand(1);
  add_put(*types, chosen);
  add_simple(*types, chosen, "get", "Show one type", get);
  add_simple(*types, chosen, "list", "List all types", list_types);
  add_simple(*types, chosen, "delete", "Delete a type without live jobs", remove);
  add_simple(*types, chosen, "pause", "Stop firing; jobs stay pending", pause);
  add_simple(*types, chosen, "resume", "Fire again", resume);
}

}  // namespace tocsin
