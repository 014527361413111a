#include "delivery/resolver.h"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tocsin {

void SystemResolver::resolve(const std::string& host, Done done) {
  const bool is_accepted = threads_.try_run([host, done] {
    boost::asio::io_context unused;
    boost::system::error_code ec;
    // With a service each address is listed once, and not once per kind of socket.
    const auto found =
        boost::asio::ip::tcp::resolver(unused).resolve(host, "0", boost::asio::ip::tcp::resolver::numeric_service, ec);
    Addresses addresses;
    for (const auto& entry : found) addresses.push_back(entry.endpoint().address());
    done(ec, std::move(addresses));
  });
  if (!is_accepted) done(boost::asio::error::try_again, {});
}

}  // namespace tocsin
