// A file for a program that this one starts, in memory: gone with this program, whatever ends it.
#pragma once

#include <string>

namespace tocsin::bench {

class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content);  // throws Failure
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const;

 private:
  int file_ = -1;
};

}  // namespace tocsin::bench
