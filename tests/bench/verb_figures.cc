#include "bench/verb_figures.h"

namespace tocsin::bench {
namespace {

struct VerbTitle {
  const char* name;
  const char* title;
  const char* aim;  // beside the floor
};

void add_verb(Section& section, const VerbTitle& verb, const char* unit) {
  const std::string name = section.measurement + "." + verb.name;
  section.figures.push_back({name, verb.title, unit, "", "verbs.floor"});
  section.figures.push_back({name + "_x", "  x the floor beside it", "x", verb.aim});
  section.figures.push_back({name + "_p50", "  p50", "ms"});
  section.figures.push_back({name + "_p99", "  p99", "ms", "20"});
}

}  // namespace

Section verbs_section() {
  Section section{"verbs",
                  "Every verb over 32 connections, many jobs finished a moment ago",
                  {{"verbs.floor", "single-row commits of pgbench, 32 clients", "rows/s"}}};
  for (const VerbTitle& verb : std::vector<VerbTitle>{
           {"create", "POST /v1/jobs", "1.5"},
           {"keyed", "the same with an idempotency key", "1.2"},
           {"get", "GET /v1/jobs/{id}", "3"},
           {"get_finished", "  of a finished job", ""},
           {"get_unknown", "  of no job", ""},
           {"list", "GET /v1/jobs?biz_id=", "1.5"},
           {"list_finished", "  of a key with four finished jobs", ""},
           {"list_unknown", "  of a key without jobs", ""},
           {"reschedule", "POST .../reschedule", "1.0"},
           {"cancel", "POST .../cancel", "1.3"},
           {"cancel_key", "POST /v1/jobs/cancel {biz_id}", "1.0"},
           {"cancel_finished_key", "  of a key with four finished jobs", "1.0"},
           {"cancel_unknown_key", "  of a key without jobs", "1.0"},
           {"run", "POST .../run", "0.8"},
       })
    add_verb(section, verb, "req/s");
  add_verb(section, {"sql_create", "SELECT tocsin.create_job(...), 32 sessions", "0.7"}, "calls/s");
  add_verb(section, {"sql_cancel_key", "SELECT tocsin.cancel_jobs(key), 32 sessions", "0.7"}, "calls/s");
  add_verb(section, {"floor_function", "the floor's insert in a function like create_job", ""}, "calls/s");
  add_verb(section, {"floor_cancel", "a row from one bare table to another in a function", ""}, "calls/s");
  return section;
}

const std::vector<Named>& past_states() {
  static const std::vector<Named> states = {{"none", "none finished"},
                                            {"unknown", "many today, no statistics"},
                                            {"known", "many today, fresh statistics"},
                                            {"stale", "many today, statistics from before"},
                                            {"days", "as many on 30 days besides"}};
  return states;
}

const std::vector<Named>& past_verbs() {
  static const std::vector<Named> verbs = {
      {"create", "create"},
      {"keyed", "create with a key"},
      {"sql_create", "create_job in SQL"},
      {"get", "get of a pending job"},
      {"get_unknown", "get of no job"},
      {"list_key", "list by key"},
      {"list_key_pending", "list by key and status"},
      {"list_finished_key", "list by a key of finished jobs"},
      {"list_finished_key_done", "list by a key of finished jobs and status"},
      {"list_unknown_key", "list by a key without jobs"},
      {"list_done", "list of the done jobs of a type"},
      {"reschedule", "reschedule"},
      {"sql_reschedule", "reschedule_job in SQL"},
      {"run", "run"},
      {"cancel", "cancel by id"},
      {"cancel_key", "cancel by key"},
      {"cancel_finished_key", "cancel by a key of finished jobs"},
      {"cancel_unknown_key", "cancel by a key without jobs"},
      {"sql_cancel_key", "cancel_jobs in SQL"},
      {"get_finished", "get of a finished job"},
  };
  return verbs;
}

Section past_section() {
  Section section{"key_history", "One caller, p50 of 200 requests, beside many finished jobs", {}};
  for (const Named& state : past_states())
    for (const Named& verb : past_verbs())
      section.figures.push_back({std::string("key_history.") + state.name + "_" + verb.name,
                                 std::string(state.title) + ": " + verb.title, "ms"});
  return section;
}

Section leases_section() {
  Section section{"leases",
                  "What consumers say of leases, and retries, over 32 connections",
                  {{"leases.alone_p99", "acknowledgements of leases of 2 s alone, p99", "ms"},
                   {"leases.beside_p99", "  beside 40 callers that list a rare type over all done jobs", "ms"},
                   {"leases.beside_ratio", "    to those alone", "x", "<= 1.5"},
                   {"leases.beside_acks", "    acknowledgements, and a lease for each 300", "req/s"},
                   {"leases.beside_stale", "    that came too late, alone or beside", "", "0", "", Figure::Rounds::sum},
                   {"leases.lists", "    lists answered", "req/s"},
                   {"leases.lists_refused", "    lists refused, or too slow", "", "0", "", Figure::Rounds::sum}}};
  for (const VerbTitle& verb : std::vector<VerbTitle>{{"extend", "POST /v1/leases/extend, a lease each", ""},
                                                      {"ack", "POST /v1/leases/ack, a lease each", ""},
                                                      {"nack", "POST /v1/leases/nack, a lease each", ""},
                                                      {"retry", "POST /v1/jobs/{id}/retry", ""}})
    add_verb(section, verb, "req/s");
  return section;
}

}  // namespace tocsin::bench
