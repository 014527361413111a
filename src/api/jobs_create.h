// What POST /v1/jobs (jobs_create.cc) and POST /v1/jobs/batch (jobs_create_many.cc) share. Thread: any; a batch is
// parsed on a thread of a RequestPool, because a large body takes long.
#pragma once

#include <string>

#include "api/context.h"
#include "api/problem.h"

namespace tocsin {

// Why `job` was not created. `item`: "jobs[0]." for an item of a batch. REQUIRES:
// reply.is_refused().
Problem create_refusal(const ApiContext& context, const NewJob& job, const CreateReply& reply,
                       const std::string& item = "");
// Sets the fields that the caller left to the type, such as max_attempts.
void complete_job(NewJob& job, const BizType& type);
// Takes the trace context of the call, if it is valid.
void take_traceparent(const CallPtr& call, NewJob& job);

}  // namespace tocsin
