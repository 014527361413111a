// Runs this bench program as a node whose `cpp` handlers do nothing, so that only claiming, running and finishing are
// measured.
#pragma once

namespace tocsin::bench {

// kCppHandler: the handler settings of a type; REQUIRES: the node runs serve_main(). kThisProgram: the path to start.
inline constexpr const char* kCppHandler = R"({"kind":"cpp"})";
inline constexpr const char* kThisProgram = "/proc/self/exe";

// The main() of such a node; takes the options of `tocsin serve`.
int serve_main(int argc, char** argv);

}  // namespace tocsin::bench
