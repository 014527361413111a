// `tocsin migrate`.
#include <cstdio>

#include "multidb/open_databases.h"
#include "node/run.h"

namespace tocsin {

int run_migrate(const NodeConfig& config) {
  if (config.databases.empty()) {
    std::fprintf(stderr, "tocsin: database: a database is needed: --database URL or TOCSIN_DATABASE\n");
    return 1;
  }
  const auto done =
      migrate_databases(config, /*may_miss=*/false, [](const std::string& step) { std::printf("%s\n", step.c_str()); });
  if (!done) {
    const Error& error = done.error();
    std::fprintf(stderr, "tocsin: %s%s%s\n", error.field.c_str(), error.field.empty() ? "" : ": ",
                 error.message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace tocsin
