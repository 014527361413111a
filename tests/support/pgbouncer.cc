#include "support/pgbouncer.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <pqxx/pqxx>
#include <stdexcept>

#include "support/server.h"

namespace tocsin {

Pgbouncer::Pgbouncer(const std::string& url, const std::string& further) {
  pqxx::connection direct(url);
  const int port = free_port();
  const auto folder = std::filesystem::path(required_env("TOCSIN_TEST_DIR")) / ("pgbouncer-" + std::to_string(port));
  std::filesystem::create_directories(folder);
  const std::string file = folder / "pgbouncer.ini";
  std::ofstream(file) << "[databases]\n* = host=" << direct.hostname() << " port=" << direct.port()
                      << " user=" << direct.username()
                      << "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " << port
                      << "\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 6\n"
                         "max_client_conn = 1000\n"
                      << further << "\n";
  url_ =
      "postgresql://" + std::string(direct.username()) + "@127.0.0.1:" + std::to_string(port) + "/" + direct.dbname();
  std::vector<std::string> command{"/usr/sbin/pgbouncer", file};
  if (::geteuid() == 0)  // which it refuses to be
    command.insert(command.begin(),
                   {"/usr/bin/setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--pdeathsig", "KILL"});
  process_ = std::make_unique<Process>(command);
  const bool is_up = eventually([this] {
    try {
      execute(url_, "SELECT 1");
      return true;
    } catch (const pqxx::failure&) {
      return !process_->is_running();
    }
  });
  if (!is_up || !process_->is_running())
    throw std::runtime_error("pgbouncer does not start: " + process_->out() + process_->err());
}

}  // namespace tocsin
