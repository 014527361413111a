#include "bench/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "cli/rest_client.h"

namespace tocsin::bench {

MemoryFile::MemoryFile(const std::string& content) : file_(::memfd_create("bench", MFD_CLOEXEC)) {
  std::size_t done = 0;
  while (file_ >= 0 && done < content.size()) {
    const ssize_t n = ::write(file_, content.data() + done, content.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  if (file_ >= 0 && done == content.size()) return;
  if (file_ >= 0) ::close(file_);
  throw Failure("no memory for a file");
}

MemoryFile::~MemoryFile() { ::close(file_); }

std::string MemoryFile::path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_); }

}  // namespace tocsin::bench
