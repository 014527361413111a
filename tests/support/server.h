// Connection strings of the PostgreSQL server that tests use, and free ports for nodes.
#pragma once

#include <string>

namespace tocsin {

// `url` with another database: the same server and user. `url` may be a URL or a keyword=value string.
std::string url_of(std::string url, const std::string& database);

// Executes one statement on a new connection.
void execute(const std::string& url, const std::string& statement);

// A port of this machine that was free a moment ago. Throws boost::system::system_error.
int free_port();

}  // namespace tocsin
