#include "bench/processor_time.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/rest_client.h"

namespace tocsin::bench {
namespace {

struct Usage {
  pid_t parent = 0;
  double own = 0, ended_children = 0;  // seconds
};

// proc(5), /proc/pid/stat: the name may hold blanks and brackets, so what counts begins behind the last bracket.
Usage usage_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line((std::istreambuf_iterator<char>(file)), {});
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) throw Failure("process " + std::to_string(pid) + " does not run here");
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  Usage usage;
  fields >> skipped >> usage.parent;
  for (int i = 0; i < 9; ++i) fields >> skipped;  // to utime, the fourteenth of all
  std::array<double, 4> ticks{};                  // utime stime cutime cstime
  for (double& each : ticks) fields >> each;
  const auto per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  usage.own = (ticks[0] + ticks[1]) / per_second;
  usage.ended_children = (ticks[2] + ticks[3]) / per_second;
  return usage;
}

}  // namespace

double processor_seconds(pid_t pid) { return usage_of(pid).own; }

double processor_seconds_of_all(pid_t server) {
  std::ifstream file("/proc/" + std::to_string(server) + "/task/" + std::to_string(server) + "/children");
  const Usage usage = usage_of(server);
  double sum = usage.own + usage.ended_children;
  for (pid_t child = 0; file >> child;) {
    try {
      sum += usage_of(child).own;
    } catch (const Failure&) {  // it has ended since; the next reading has it among the ended
    }
  }
  return sum;
}

pid_t server_of(pqxx::connection& connection) { return usage_of(connection.backendpid()).parent; }

}  // namespace tocsin::bench
