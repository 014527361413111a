#include "tocsin/error.h"
#include "tocsin/job_status.h"

namespace tocsin {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::in_doubt:
      return "in doubt";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::moved:
      return "moved";
    case ErrorCode::superseded:
      return "superseded";
    case ErrorCode::invalid:
      return "invalid";
  }
  return "?";
}

std::string_view to_string(JobStatus status) {
  switch (status) {
    case JobStatus::pending:
      return "pending";
    case JobStatus::running:
      return "running";
    case JobStatus::done:
      return "done";
    case JobStatus::cancelled:
      return "cancelled";
    case JobStatus::dead:
      return "dead";
  }
  return "?";
}

std::optional<JobStatus> job_status_from(std::string_view name) {
  for (JobStatus status :
       {JobStatus::pending, JobStatus::running, JobStatus::done, JobStatus::cancelled, JobStatus::dead}) {
    if (to_string(status) == name) return status;
  }
  return {};
}

}  // namespace tocsin
