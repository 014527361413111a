// Processor time that processes of this machine have used.
#pragma once

#include <sys/types.h>

#include <pqxx/pqxx>

namespace tocsin::bench {

// User and system time of a running process, in seconds. Throws Failure.
double processor_seconds(pid_t pid);

// The same for a server and all its child processes, ended ones included.
double processor_seconds_of_all(pid_t server);

// The PostgreSQL server process of a connection. Throws Failure if it runs on another machine.
pid_t server_of(pqxx::connection& connection);

}  // namespace tocsin::bench
