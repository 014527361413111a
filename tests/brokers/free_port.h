// A port for a server of a test's own.
#pragma once

namespace tocsin {

// On the loopback address, free right now, and below the range that the kernel hands out to outgoing connections.
int free_port();

}  // namespace tocsin
