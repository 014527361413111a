// JobStatus: the five states of a job. pending: waits for its time or for its next attempt. running: claimed; due again
// if its lease ends. Final: done; cancelled by a caller; dead (attempts spent, refused for good, or too late), which
// can become pending again. docs/job_lifecycle.md draws the edges.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tocsin {

// Stored in tables. DO NOT CHANGE.
enum class JobStatus : std::int16_t { pending = 0, running = 1, done = 2, cancelled = 3, dead = 4 };

constexpr bool is_final(JobStatus status) { return status >= JobStatus::done; }
std::string_view to_string(JobStatus status);                     // the name of the enumerator: "pending"
std::optional<JobStatus> job_status_from(std::string_view name);  // nullopt: no such name

}  // namespace tocsin
