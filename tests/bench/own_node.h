// This program as a node whose handlers do nothing, so that claiming, running and finishing can be measured alone.
#pragma once

namespace tocsin::bench {

// The type's handler. REQUIRES: what is started is serve_main().
inline constexpr const char* kCppHandler = R"({"kind":"cpp"})";
inline constexpr const char* kThisProgram = "/proc/self/exe";

// main() of `serve`: understands the options of a node.
int serve_main(int argc, char** argv);

}  // namespace tocsin::bench
