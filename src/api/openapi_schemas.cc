// The schemas of request and answer bodies, for /openapi.json. A test compares them with what the code writes.
#include "api/openapi.h"

namespace tocsin {

std::string_view openapi_schemas() {
  return R"json(
"JobId":{"type":"string","pattern":"^[0-9]+$","examples":["4113"]},
"TypeName":{"type":"string","pattern":"^(?![.]{1,2}$)[A-Za-z0-9_.:-]{1,128}$","examples":["order.unpaid"]},
"Time":{"type":"string","format":"date-time","description":"RFC 3339 with an offset","examples":["2026-03-01T12:00:00.250000Z"]},
"MaybeTime":{"type":["string","null"],"format":"date-time"},
"BizId":{"type":"string","minLength":1,"maxLength":128,"description":"The business key: 1 to 128 bytes without NUL"},
"NewBizId":{"oneOf":[{"$ref":"#/components/schemas/BizId"},{"type":"integer","minimum":0,"maximum":18446744073709551615}]},
"Delay":{"type":"integer","minimum":0,"maximum":1577836800000,"description":"Milliseconds from now"},
"JobStatus":{"type":"string","enum":["pending","running","done","cancelled","dead"]},
"Problem":{"type":"object","description":"RFC 9457","required":["type","title","status","detail"],"properties":{
  "type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},"detail":{"type":"string"},
  "field":{"type":"string","description":"The input field at fault","examples":["jobs[3].biz_id"]},
  "job_id":{"$ref":"#/components/schemas/JobId","description":"The job that has the idempotency key"},
  "items":{"type":"array","items":{"type":"object"},"description":"Of a batch that went to several databases: the result of each item"}}},
"JobError":{"type":"object","required":["at","node","attempt","message","started_at"],"properties":{
  "at":{"$ref":"#/components/schemas/Time"},"node":{"type":"string"},"attempt":{"type":"integer"},"message":{"type":"string"},
  "started_at":{"$ref":"#/components/schemas/MaybeTime","description":"Start of the attempt that failed; null: the entry is of no attempt"}}},
"Job":{"type":"object","required":["job_id","biz_id","biz_type","status","action_time","fire_at","attempts","max_attempts","attribute",
  "idempotency_key","shard","node","gmt_create","gmt_modified","started_at","last_started_at","finished_at","lateness_ms","errors"],"properties":{
  "job_id":{"$ref":"#/components/schemas/JobId"},"biz_id":{"$ref":"#/components/schemas/BizId"},
  "biz_type":{"type":["string","null"],"description":"null while this node does not know the type"},
  "status":{"$ref":"#/components/schemas/JobStatus"},
  "action_time":{"$ref":"#/components/schemas/Time","description":"The deadline the business asked for"},
  "fire_at":{"$ref":"#/components/schemas/Time","description":"When the job is due next: deadline, retry time or, while it runs, the end of its lease"},
  "attempts":{"type":"integer"},"max_attempts":{"type":"integer"},"attribute":{"description":"The creator's data"},
  "idempotency_key":{"type":["string","null"]},"shard":{"type":"integer"},"node":{"type":["string","null"]},
  "gmt_create":{"$ref":"#/components/schemas/Time"},"gmt_modified":{"$ref":"#/components/schemas/Time"},
  "started_at":{"$ref":"#/components/schemas/MaybeTime","description":"First start since the deadline was set"},
  "last_started_at":{"$ref":"#/components/schemas/MaybeTime","description":"Start of the attempt that runs, or with which the job was done; null in other states"},
  "finished_at":{"$ref":"#/components/schemas/MaybeTime"},
  "lateness_ms":{"type":["number","null"],"description":"First start after the later of action_time and the moment it was set; never negative"},
  "errors":{"type":"array","items":{"$ref":"#/components/schemas/JobError"}}}},
"NewJob":{"type":"object","additionalProperties":false,"required":["biz_type","biz_id"],"oneOf":[{"required":["action_time"]},{"required":["delay_ms"]}],"properties":{
  "biz_type":{"type":"string"},"biz_id":{"$ref":"#/components/schemas/NewBizId"},
  "action_time":{"$ref":"#/components/schemas/Time","description":"2000-01-01 to 50 years ahead; a past one is due at once"},
  "delay_ms":{"$ref":"#/components/schemas/Delay"},"attribute":{"description":"Any JSON, at most 64 KiB"},
  "max_attempts":{"type":["integer","null"],"minimum":1,"maximum":1000},
  "idempotency_key":{"type":["string","null"],"minLength":1,"maxLength":256},
  "on_conflict":{"type":["string","null"],"enum":["keep","replace","earliest","latest","reject",null],"default":"keep",
    "description":"When a job has the key: keep answers with it; replace, earliest and latest change it while it is pending; reject refuses. A job that has ended keeps its key until its history is dropped, so the answer is 409 then, unless keep finds the same body; detail and job_status say how the job ended and since when. A new job needs another key"}}},
"NewJobs":{"type":"object","additionalProperties":false,"required":["jobs"],"properties":{
  "jobs":{"type":"array","maxItems":10000,"items":{"$ref":"#/components/schemas/NewJob"}}}},
"CreatedJobs":{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"oneOf":[
  {"type":"object","required":["job_id","created"],"properties":{"job_id":{"$ref":"#/components/schemas/JobId"},"created":{"type":"boolean"}}},
  {"type":"object","required":["error"],"properties":{"error":{"$ref":"#/components/schemas/Problem"}}}]}}}},
"Missing":{"type":"array","items":{"type":"string"},"description":"Databases that gave no answer; absent when all did"},
"JobPage":{"type":"object","required":["items","next_cursor"],"properties":{"missing":{"$ref":"#/components/schemas/Missing"},
  "items":{"type":"array","items":{"$ref":"#/components/schemas/Job"}},"next_cursor":{"type":["string","null"],"description":"null at the end. With biz_id and biz_type a page before it may have fewer jobs than the limit, or none: it looks at 1,000 jobs of the key"}}},
"CancelledJob":{"type":"object","required":["result","job"],"properties":{"result":{"const":"cancelled"},"job":{"$ref":"#/components/schemas/Job"}}},
"WrongState":{"allOf":[{"$ref":"#/components/schemas/Problem"},{"type":"object","required":["result","job"],"properties":{
  "result":{"enum":["pending","running","finished"]},"job":{"$ref":"#/components/schemas/Job"}}}]},
"NewTime":{"type":"object","additionalProperties":false,"oneOf":[{"required":["action_time"]},{"required":["delay_ms"]}],"properties":{
  "action_time":{"$ref":"#/components/schemas/Time"},"delay_ms":{"$ref":"#/components/schemas/Delay"}}},
"CancelJobs":{"type":"object","additionalProperties":false,"oneOf":[{"required":["biz_id"]},{"required":["job_ids"]}],"properties":{
  "biz_id":{"$ref":"#/components/schemas/NewBizId"},"biz_type":{"type":"string"},
  "job_ids":{"type":"array","maxItems":10000,"items":{"$ref":"#/components/schemas/JobId"}}}},
"JobIds":{"type":"array","items":{"$ref":"#/components/schemas/JobId"}},
"CancelledJobs":{"type":"object","description":"By result; all empty, and neither more nor more_finished: the key has no job, or none of the type","required":["cancelled","running","finished","not_found"],"properties":{
  "cancelled":{"$ref":"#/components/schemas/JobIds"},"running":{"$ref":"#/components/schemas/JobIds"},
  "finished":{"$ref":"#/components/schemas/JobIds"},"not_found":{"$ref":"#/components/schemas/JobIds"},
  "locked":{"$ref":"#/components/schemas/JobIds","description":"Locked by another transaction, or moving to another database: not cancelled, ask again; absent when there is none"},
  "more":{"const":true,"description":"With biz_id: live jobs of it may be left, ask again; absent otherwise"},
  "more_finished":{"const":true,"description":"With biz_id: more jobs of it have ended than the newest 1,000, of which those of the type are named; absent otherwise"},
  "unavailable":{"$ref":"#/components/schemas/JobIds","description":"Their database did not answer: not cancelled; absent when there is none"},
  "in_doubt":{"$ref":"#/components/schemas/JobIds","description":"The answer of their database was lost; absent when there is none"}}},
"RetryJobs":{"type":"object","additionalProperties":false,"required":["biz_type"],"properties":{
  "biz_type":{"type":"string"},"from":{"$ref":"#/components/schemas/MaybeTime","description":"Died not before"},
  "to":{"$ref":"#/components/schemas/MaybeTime","description":"Died before"},
  "limit":{"type":["integer","null"],"minimum":1,"maximum":10000,"default":1000},
  "rate_per_s":{"type":["number","null"],"minimum":0.001,"maximum":1000000,"description":"At most so many become due each second"},
  "reason":{"type":["string","null"],"maxLength":1000,"description":"Why; kept in the audit log"}}},
"Me":{"type":"object","required":["name","role"],"properties":{"name":{"type":["string","null"],"description":"Name of the token; null on a node without tokens"},
  "role":{"type":"string","enum":["admin","producer","consumer","viewer"]}}},
"BulkId":{"type":"string","pattern":"^[0-9]+$","examples":["7"]},
"BulkFilter":{"type":"object","description":"All fields that are given must hold; at least one is needed besides status","properties":{
  "biz_type":{"type":["string","null"]},"biz_id":{"oneOf":[{"$ref":"#/components/schemas/NewBizId"},{"type":"null"}]},
  "status":{"type":["string","null"],"enum":["pending","dead",null],"description":"What the action changes: dead for retry, pending for the others"},
  "from":{"$ref":"#/components/schemas/MaybeTime","description":"action_time not before"},
  "to":{"$ref":"#/components/schemas/MaybeTime","description":"action_time before"},
  "reason":{"type":["string","null"],"description":"Of dead jobs: the reason as the report dead shows it"}}},
"NewBulk":{"type":"object","additionalProperties":false,"required":["action","filter"],"properties":{
  "action":{"type":"string","enum":["cancel","reschedule","run","retry"]},"filter":{"$ref":"#/components/schemas/BulkFilter"},
  "action_time":{"$ref":"#/components/schemas/MaybeTime","description":"reschedule: the new deadline"},
  "delay_ms":{"oneOf":[{"$ref":"#/components/schemas/Delay"},{"type":"null"}],"description":"reschedule: the new deadline, from the start"},
  "spread_ms":{"type":["integer","null"],"minimum":0,"maximum":31622400000,"description":"reschedule: the deadlines are spread evenly over this time after it; the last may lie 50 years ahead"},
  "rate_per_s":{"type":["number","null"],"minimum":0.001,"maximum":1000000,"description":"Jobs changed per second, at most"},
  "dry_run":{"type":["boolean","null"],"description":"Count only"},
  "expected":{"type":["integer","null"],"minimum":0,"description":"Refused with 409 when another number matches now; a dry run, too"},
  "reason":{"type":["string","null"],"maxLength":1000,"description":"Why; kept in the audit log"}}},
"BulkMatch":{"type":"object","required":["matched"],"properties":{"matched":{"type":"integer"}}},
"BulkStarted":{"type":"object","required":["bulk_id","matched"],"properties":{"bulk_id":{"$ref":"#/components/schemas/BulkId"},"matched":{"type":"integer"}}},
"Bulk":{"type":"object","required":["bulk_id","action","state","matched","changed","missed","is_stopping","filter","rate_per_s","reason","actor","started_at",
  "finished_at","error"],"properties":{"bulk_id":{"$ref":"#/components/schemas/BulkId"},
  "action":{"type":"string","enum":["cancel","reschedule","run","retry"]},"state":{"type":"string","enum":["running","done","stopped","failed"]},
  "matched":{"type":"integer","description":"When it began"},"changed":{"type":"integer"},
  "missed":{"type":"integer","description":"Matched and not changed: they fired, were cancelled or changed meanwhile, or it was stopped; 0 while it runs"},
  "is_stopping":{"type":"boolean"},"filter":{"$ref":"#/components/schemas/BulkFilter"},"rate_per_s":{"type":["number","null"]},"reason":{"type":"string"},
  "actor":{"type":"string","description":"Name of the token that started it"},"started_at":{"$ref":"#/components/schemas/Time"},
  "finished_at":{"$ref":"#/components/schemas/MaybeTime"},"error":{"type":["string","null"]}}},
"BulkList":{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"$ref":"#/components/schemas/Bulk"}}}},
"RetriedJobs":{"type":"object","required":["retried"],"properties":{"missing":{"$ref":"#/components/schemas/Missing"},"retried":{"type":"integer"},
  "in_doubt":{"type":"array","items":{"type":"string"},"description":"A database whose answer was lost: it may have retried as many jobs as were left of the limit, so the databases after it were not asked; absent when there is none"}}},
"Limits":{"type":["object","null"],"required":["max_attempts","max_running","running","rate_per_s","catch_up","paused","paused_until","ttr_ms"],"properties":{
  "max_attempts":{"type":"integer"},"max_running":{"type":["integer","null"]},
  "running":{"type":["integer","null"],"description":"Jobs that run in the cluster now, as far as this node knows; of types with max_running"},
  "rate_per_s":{"type":["number","null"]},"catch_up":{"$ref":"#/components/schemas/CatchUp"},
  "paused":{"type":"boolean"},"paused_until":{"$ref":"#/components/schemas/MaybeTime"},"ttr_ms":{"type":"integer"}}},
"Explanation":{"type":"object","required":["job_id","status","reason","shard","node","database","next_attempt_at","attempts_left","limits","errors","job"],"properties":{
  "job_id":{"$ref":"#/components/schemas/JobId"},"status":{"$ref":"#/components/schemas/JobStatus"},
  "reason":{"type":"string","description":"Why it has, or has not, fired"},"shard":{"type":"integer"},
  "node":{"type":"string","description":"Name of the node that scans the shard; empty: none"},"database":{"type":"string"},
  "next_attempt_at":{"$ref":"#/components/schemas/MaybeTime"},"attempts_left":{"type":"integer"},
  "limits":{"$ref":"#/components/schemas/Limits"},"errors":{"type":"array","items":{"$ref":"#/components/schemas/JobError"}},
  "job":{"$ref":"#/components/schemas/Job"}}},
"Handler":{"type":"object","required":["kind"],"properties":{
  "kind":{"type":"string","examples":["noop","webhook","sql","pull","cpp","amqp","kafka","redis"]},
  "url":{"type":"string","description":"webhook; amqp, redis: amqp://user:password@host:port/vhost, the password shown as ***"},
  "exchange":{"type":"string","description":"amqp","default":""},"routing_key":{"type":"string","description":"amqp; the name of the type by default"},
  "bootstrap_servers":{"type":"string","description":"kafka","examples":["host1:9092,host2:9092"]},"topic":{"type":"string","description":"kafka"},
  "security_protocol":{"type":"string","description":"kafka","enum":["plaintext","ssl","sasl_plaintext","sasl_ssl"]},
  "sasl_mechanism":{"type":"string","description":"kafka","enum":["PLAIN","SCRAM-SHA-256","SCRAM-SHA-512"]},
  "username":{"type":"string","description":"kafka"},"password":{"type":"string","description":"kafka; shown as ***"},
  "stream":{"type":"string","description":"redis; the name of the type by default"},
  "maxlen":{"type":"integer","minimum":1,"description":"redis: trims the stream to about so many entries"},"secret":{"description":"webhook; shown as whsec_***. With several, every request has a signature for each, so that receivers can change keys",
    "oneOf":[{"type":"string"},{"type":"array","minItems":1,"maxItems":4,"items":{"type":"string"}}]},
  "timeout_ms":{"type":"integer","description":"webhook"},"headers":{"type":"object","description":"webhook; values are shown as *** to those who may not write types","additionalProperties":{"type":"string"}},
  "async":{"type":"boolean","description":"webhook: after an answer 202 the job waits for its acknowledgement"},"function":{"type":"string","description":"sql"}}},
"Backoff":{"oneOf":[
  {"type":"object","additionalProperties":false,"properties":{"base_ms":{"type":"integer","minimum":0,"default":1000},"factor":{"type":"number","minimum":1,"default":2},
    "max_ms":{"type":"integer","minimum":0,"default":3600000},"jitter":{"type":"number","minimum":0,"maximum":1,"default":0.2}}},
  {"type":"object","additionalProperties":false,"required":["delays_ms"],"properties":{"delays_ms":{"type":"array","minItems":1,"items":{"type":"integer","minimum":0}}}}]},
"CatchUp":{"type":"object","additionalProperties":false,"properties":{
  "drop_older_than_ms":{"type":["integer","null"],"minimum":1},"rate_per_s":{"type":["number","null"],"minimum":0.001,"maximum":1000000}}},
"Slo":{"type":["object","null"],"additionalProperties":false,"required":["lateness_ms","share"],"properties":{
  "lateness_ms":{"type":"integer","minimum":0,"description":"A first start no later than this after its deadline is within the target"},
  "share":{"type":"number","minimum":0,"maximum":1,"description":"Share of the first starts that must be within it"}}},
"NewType":{"type":"object","required":["handler"],"properties":{
  "handler":{"$ref":"#/components/schemas/Handler"},"ttr_ms":{"type":"integer","minimum":1,"default":30000,"description":"Time to run: length of a lease"},
  "max_attempts":{"type":"integer","minimum":1,"maximum":1000,"default":16},"backoff":{"$ref":"#/components/schemas/Backoff"},
  "max_running":{"type":["integer","null"],"minimum":1,"maximum":1000000,"description":"Jobs that run at once in the cluster; without effect on noop, whose jobs never run"},"rate_per_s":{"type":["number","null"],"minimum":0.001,"maximum":1000000},
  "catch_up":{"$ref":"#/components/schemas/CatchUp"},"slo":{"$ref":"#/components/schemas/Slo"}}},
"Type":{"allOf":[{"$ref":"#/components/schemas/NewType"},{"type":"object","required":["name","paused","paused_until","gmt_create","gmt_modified"],"properties":{
  "name":{"$ref":"#/components/schemas/TypeName"},"paused":{"type":"boolean"},"paused_until":{"$ref":"#/components/schemas/MaybeTime"},
  "gmt_create":{"$ref":"#/components/schemas/Time"},"gmt_modified":{"$ref":"#/components/schemas/Time"}}}]},
"TypePage":{"type":"object","required":["items","next_cursor"],"properties":{
  "items":{"type":"array","items":{"$ref":"#/components/schemas/Type"}},"next_cursor":{"type":["string","null"]}}},
"Overview":{"type":"object","required":["at","node","verdict","reasons","totals","due","lateness_ms","throughput","worst","paused","warnings"],"properties":{
  "at":{"$ref":"#/components/schemas/Time"},"node":{"type":"string"},"verdict":{"enum":["ok","late","down"]},
  "reasons":{"type":"array","description":"Why it is not ok","items":{"type":"object","properties":{"code":{"type":"string"},"text":{"type":"string"},"remedy":{"type":"string"}}}},
  "totals":{"type":"object","description":"Jobs by status"},
  "due":{"type":"object","description":"now: overdue, counted up to 2000 per type, more than that when is_now_exact is false; next_minute: without them, at least so many when is_capped; next_hour: from the horizon, which is counted once a minute, and at least next_minute; null until then","properties":{
    "now":{"type":"integer"},"is_now_exact":{"type":"boolean"},"next_minute":{"type":"integer"},"next_hour":{"type":["integer","null"]},"is_capped":{"type":"boolean"}}},
  "lateness_ms":{"type":"object","description":"First starts of the last 15 minutes of the cluster"},
  "throughput":{"type":"object","properties":{"created_per_s":{"type":"number"},"done_per_s":{"type":"number"}}},
  "worst":{"type":"array","maxItems":5,"items":{"type":"object","description":"retried: attempts of the last 15 minutes that failed and are tried again; is_due_exact: false when more are overdue than due says","properties":{"biz_type":{"type":"string"},"due":{"type":"integer"},"is_due_exact":{"type":"boolean"},"retried":{"type":"integer"}}}},
  "paused":{"type":"array","items":{"type":"object","description":"due: its jobs that wait; more than that when is_exact is false","properties":{"biz_type":{"type":"string"},"until":{"$ref":"#/components/schemas/MaybeTime"},"due":{"type":"integer"},"is_exact":{"type":"boolean"}}}},
  "warnings":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"remedy":{"type":"string"}}}},
  "missing":{"$ref":"#/components/schemas/Missing"}}},
"ReportPage":{"type":"object","required":["items","next_cursor","columns"],"properties":{
  "items":{"type":"array","items":{"type":"object","description":"The columns of the view of this name: docs/reports.md"}},
  "next_cursor":{"type":["string","null"]},"missing":{"$ref":"#/components/schemas/Missing"},
  "columns":{"type":"array","items":{"type":"string"},"description":"Their names, in order"},
  "totals":{"type":"object","description":"Sums over the items of this answer; percentiles and max_ms of all of them together. Absent for horizon and audit"},
  "tz":{"type":"string","description":"When tz was given: the time zone of the rows' days or hours"}}},
"DeletedType":{"type":"object","required":["result","name"],"properties":{"result":{"const":"deleted"},"name":{"$ref":"#/components/schemas/TypeName"}}},
"Pause":{"type":"object","additionalProperties":false,"properties":{"until":{"$ref":"#/components/schemas/MaybeTime","description":"Resumes by itself then"},
  "reason":{"type":["string","null"],"maxLength":1000,"description":"Why; kept in the audit log"}}},
"LeaseJobs":{"type":"object","additionalProperties":false,"required":["max"],"properties":{
  "max":{"type":"integer","minimum":1,"maximum":1000,"description":"Jobs in the answer, at most"},
  "wait_ms":{"type":["integer","null"],"minimum":0,"maximum":60000,"default":0,"description":"How long to wait for the first of them"},
  "ttr_ms":{"type":["integer","null"],"minimum":1,"maximum":604800000,"description":"Length of these leases instead of the type's"}}},
"LeaseToken":{"type":"string","minLength":1,"maxLength":128,"description":"Opaque: names one attempt of one job","examples":["9f3c2b1a00d4e5f6"]},
"LeasedJob":{"allOf":[{"$ref":"#/components/schemas/Job"},{"type":"object","required":["lease_token","lease_until"],"properties":{
  "lease_token":{"$ref":"#/components/schemas/LeaseToken"},
  "lease_until":{"$ref":"#/components/schemas/Time","description":"By the database's clock; then the job is due again"}}}]},
"LeasedJobs":{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"$ref":"#/components/schemas/LeasedJob"}}}},
"Lease":{"type":"object","additionalProperties":false,"required":["job_id","lease_token"],"properties":{
  "job_id":{"$ref":"#/components/schemas/JobId"},"lease_token":{"$ref":"#/components/schemas/LeaseToken"}}},
"AckLeases":{"type":"object","additionalProperties":false,"required":["items"],"properties":{
  "items":{"type":"array","maxItems":1000,"items":{"$ref":"#/components/schemas/Lease"}}}},
"NackLeases":{"type":"object","additionalProperties":false,"required":["items"],"properties":{
  "items":{"type":"array","maxItems":1000,"items":{"type":"object","additionalProperties":false,"required":["job_id","lease_token"],"properties":{
    "job_id":{"$ref":"#/components/schemas/JobId"},"lease_token":{"$ref":"#/components/schemas/LeaseToken"},
    "delay_ms":{"type":["integer","null"],"minimum":0,"maximum":31536000000,"description":"Until the next attempt; otherwise the type's backoff decides"},
    "error":{"type":["string","null"],"maxLength":65536,"description":"Why; its first 1000 bytes are kept with the job"}}}}}},
"ExtendLeases":{"type":"object","additionalProperties":false,"required":["items","ttr_ms"],"properties":{
  "items":{"type":"array","maxItems":1000,"items":{"$ref":"#/components/schemas/Lease"}},
  "ttr_ms":{"type":"integer","minimum":1,"maximum":604800000,"description":"The leases end this long from now"}}},
"LeaseResults":{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{
  "type":"object","required":["job_id","result"],"properties":{"job_id":{"$ref":"#/components/schemas/JobId"},
    "result":{"enum":["ok","stale","busy","unavailable","in_doubt"],
      "description":"stale: the lease is no longer valid; nothing was changed. busy: another transaction holds the job's row, or its shard is moving; nothing was changed, ask again. unavailable: its database did not answer, or (an extension of a type with max_running) the control database; nothing was changed, ask again. in_doubt: the database's answer was lost; ask again"}}}}}},
"NodePage":{"type":"object","required":["items","next_cursor"],"properties":{
  "items":{"type":"array","items":{"type":"object","required":["node","id","state","heartbeat_age_ms","shards","version"],"properties":{
    "node":{"type":"string","description":"Its name"},"id":{"type":"string","pattern":"^[0-9]+$","description":"Drawn at its start"},
    "state":{"enum":["active","draining","lost"],"description":"lost: silent for longer than the heartbeat time-out"},
    "heartbeat_age_ms":{"type":"integer"},"shards":{"type":"integer","description":"How many it scans"},"version":{"type":"string"}}}},
  "next_cursor":{"type":["string","null"]}}},
"EndpointPage":{"type":"object","required":["node","items","next_cursor"],"properties":{
  "node":{"type":"string","description":"The node that answers: each node has connections of its own"},
  "items":{"type":"array","items":{"type":"object","required":["kind","endpoint","state","in_flight","limit","mean_ms","pause_left_ms","last_error","last_error_age_ms"],"properties":{
    "kind":{"type":"string","examples":["webhook","amqp","kafka","redis","entry"],"description":"entry: messages for new jobs come from it"},
    "endpoint":{"type":"string","description":"Scheme, host and port, or broker and topic"},
    "state":{"enum":["ok","paused","trying","unavailable","idle"],"description":"paused, trying: its circuit breaker is open, half-open; unavailable: its last attempt got no answer; idle: no attempt has ended yet"},
    "in_flight":{"type":"integer","description":"Attempts that wait for its answer"},
    "limit":{"type":["integer","null"],"description":"Bound of in_flight"},
    "mean_ms":{"type":["number","null"],"description":"Mean time to the answer, of the latest attempts"},
    "pause_left_ms":{"type":"integer","description":"Time until it is tried again"},
    "last_error":{"type":["string","null"]},"last_error_age_ms":{"type":["integer","null"]}}}},
  "next_cursor":{"type":["string","null"]}}},
"ShardPage":{"type":"object","required":["items","next_cursor"],"properties":{
  "items":{"type":"array","items":{"type":"object","required":["shard","database","node","scanned_age_ms","pending_due_soon"],"properties":{
    "shard":{"type":"integer"},"database":{"type":"string"},"node":{"type":["string","null"],"description":"Name of the node that scans it"},
    "scanned_age_ms":{"type":["integer","null"],"description":"Time since that node last scanned its shards of this database"},
    "pending_due_soon":{"type":["integer","null"],"description":"Due within 5 s or overdue; counted up to 10000; null when its database did not answer"},
    "move":{"type":"object","description":"Only of a shard that is moving to another database","required":["to","state"],"properties":{
      "to":{"type":"string"},"state":{"enum":["copying","switching","switched","aborting"]}}}}}},
  "missing":{"$ref":"#/components/schemas/Missing"},
  "next_cursor":{"type":["string","null"]}}},
"Health":{"type":"object","required":["status"],"properties":{"status":{"const":"ok"}}},
"Readiness":{"type":"object","required":["status"],"description":"checks and warnings: for holders of a token, or on this machine where none is needed","properties":{
  "status":{"enum":["ready","degraded","not ready"],"description":"degraded: one of several databases cannot be used; answered with 200"},
  "checks":{"type":"object","additionalProperties":{"type":"string"}},
  "warnings":{"type":"array","items":{"type":"string"},"description":"Settings that an operator should change"}}},
"Counts":{"type":"object","required":["pending","running","done","cancelled","dead"],"properties":{
  "pending":{"type":"integer"},"running":{"type":"integer"},"done":{"type":"integer"},"cancelled":{"type":"integer"},"dead":{"type":"integer"}}},
"Stats":{"type":"object","required":["items","totals","lateness_ms","backlog"],"properties":{"missing":{"$ref":"#/components/schemas/Missing"},
  "items":{"type":"array","items":{"allOf":[{"$ref":"#/components/schemas/Counts"},{"type":"object","required":["biz_type"],"properties":{"biz_type":{"type":"string"}}}]}},
  "totals":{"$ref":"#/components/schemas/Counts"},
  "lateness_ms":{"type":"object","properties":{"n":{"type":"integer"},"p50":{"type":"number"},"p90":{"type":"number"},"p99":{"type":"number"},"max":{"type":"number"}}},
  "backlog":{"type":"object","properties":{"overdue":{"type":"integer"},"is_capped":{"type":"boolean"}}}}},
"OpenApi":{"type":"object"}
)json";
}

}  // namespace tocsin
