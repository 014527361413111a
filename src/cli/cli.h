// The command line: one binary, `tocsin`.
#pragma once

namespace tocsin {

// Returns the exit code: 0 done, 1 failed, 2 bad usage.
int run_cli(int argc, char** argv);

}  // namespace tocsin
