// The five states of a job. docs/job_lifecycle.md draws the edges.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tocsin {

// Stored in tables. DO NOT CHANGE.
enum class JobStatus : std::int16_t { pending = 0, running = 1, done = 2, cancelled = 3, dead = 4 };

constexpr bool is_final(JobStatus status) { return status >= JobStatus::done; }
std::string_view to_string(JobStatus status);
std::optional<JobStatus> job_status_from(std::string_view name);

}  // namespace tocsin
