// What programs on this machine have used of its processors.
#pragma once

#include <sys/types.h>

#include <pqxx/pqxx>

namespace tocsin::bench {

// User and system time of a running program, in seconds. Throws Failure.
double processor_seconds(pid_t pid);

// Of a server and all its processes, those that have ended too.
double processor_seconds_of_all(pid_t server);

// The PostgreSQL server behind a connection. Throws Failure when it runs elsewhere.
pid_t server_of(pqxx::connection& connection);

}  // namespace tocsin::bench
