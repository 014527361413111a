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
  return done ? 0 : report_failure(done.error());
}

}  // namespace tocsin
