// The entry of the command line: one binary, `tocsin`. Called by main().
#pragma once

namespace tocsin {

// Parses the arguments and runs the command. Returns the exit code: 0 done, 1 failed, 2 bad usage. Thread: the main
// thread, once.
int run_cli(int argc, char** argv);

}  // namespace tocsin
