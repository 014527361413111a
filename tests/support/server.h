// A PostgreSQL server that tests make databases on, and ports that nodes may take.
#pragma once

#include <string>

namespace tocsin {

// The same server and user, another database. `url` is a connection string of either kind.
std::string url_of(std::string url, const std::string& database);

// One statement on a connection of its own.
void execute(const std::string& url, const std::string& statement);

// A port that was free a moment ago. Throws boost::system::system_error.
int free_port();

}  // namespace tocsin
