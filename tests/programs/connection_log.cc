// Preloaded into a program: writes every destination that it passes to connect(), sendto(), sendmsg() or getaddrinfo()
// as a line of the file TOCSIN_CONNECTION_LOG: "ADDRESS PORT", "unix" or "name NAME". Calls within the C library, such
// as those of its resolver, are not seen; the name is.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void write_line(const std::string& line) {
  const char* const path = std::getenv("TOCSIN_CONNECTION_LOG");
  const int file = path ? ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  [[maybe_unused]] const auto written = ::write(file, line.data(), line.size());
  ::close(file);
}

void note(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_UNIX) return write_line("unix\n");
  if (address->sa_family == AF_INET) {
    const auto* const in = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    write_line(std::string(text) + " " + std::to_string(ntohs(in->sin_port)) + "\n");
  } else if (address->sa_family == AF_INET6) {
    const auto* const in = reinterpret_cast<const sockaddr_in6*>(address);
    ::inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
    write_line(std::string(text) + " " + std::to_string(ntohs(in->sin6_port)) + "\n");
  }
}

}  // namespace

extern "C" {

int connect(int socket, const sockaddr* address, socklen_t size) {
  static auto* const original = next<int(int, const sockaddr*, socklen_t)>("connect");
  if (address) note(address);
  return original(socket, address, size);
}

ssize_t sendto(int socket, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  static auto* const original = next<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)>("sendto");
  if (to) note(to);
  return original(socket, data, size, flags, to, to_size);
}

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static auto* const original = next<ssize_t(int, const msghdr*, int)>("sendmsg");
  if (message->msg_name) note(static_cast<const sockaddr*>(message->msg_name));
  return original(socket, message, flags);
}

int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  static auto* const original = next<int(const char*, const char*, const addrinfo*, addrinfo**)>("getaddrinfo");
  if (name) write_line("name " + std::string(name) + "\n");
  return original(name, service, hints, found);
}

}  // extern "C"
