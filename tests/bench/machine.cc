#include "bench/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <pqxx/pqxx>

#include "tocsin/version.h"

namespace tocsin::bench {
namespace {

std::string rounded(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string kernel() {
  utsname names{};
  ::uname(&names);
  return std::string(names.sysname) + " " + names.release;
}

}  // namespace

double load_average() {
  double one_minute = 0;
  return ::getloadavg(&one_minute, 1) == 1 ? one_minute : 0;
}

Machine describe_machine(const PostgresServer& server) {
  pqxx::connection connection(server.url());
  pqxx::nontransaction tx(connection);
  const auto setting = [&](const char* name) { return std::string(tx.exec1(std::string("SHOW ") + name)[0].c_str()); };
  std::string settings;
  for (const char* name :
       {"shared_buffers", "max_wal_size", "min_wal_size", "fsync", "synchronous_commit", "wal_sync_method"})
    settings += std::string(settings.empty() ? "" : ", ") + name + " " + setting(name);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return {{"cpu", std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) + " x " + cpu_model()},
          {"memory", rounded(memory / (1 << 30), 1) + " GiB"},
          {"system", kernel()},
          {"database", "PostgreSQL " + setting("server_version") + (server.is_private() ? ", a private cluster" : "")},
          {"settings", settings},
          {"tocsin", kVersion},
          {"load before", rounded(load_average(), 2)}};
}

}  // namespace tocsin::bench
