#include "support/server.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <pqxx/pqxx>

namespace tocsin {

std::string url_of(std::string url, const std::string& database) {
  const auto scheme = url.find("://");
  if (scheme == std::string::npos) return url + " dbname=" + database;
  const auto query = std::min(url.find('?', scheme), url.size());
  const auto path = std::min(url.find('/', scheme + 3), query);
  return url.replace(path, query - path, '/' + database);
}

void execute(const std::string& url, const std::string& statement) {
  pqxx::connection connection(url);
  pqxx::nontransaction(connection).exec(statement);
}

int free_port() {
  using boost::asio::ip::tcp;
  boost::asio::io_context loop;
  return tcp::acceptor(loop, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)).local_endpoint().port();
}

}  // namespace tocsin
