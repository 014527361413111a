// MemoryFile: a file in memory, for a program that the bench starts. It ends with the bench, also after a crash.
#pragma once

#include <string>

namespace tocsin::bench {

class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content);  // throws Failure: no file
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const;

 private:
  int file_ = -1;
};

}  // namespace tocsin::bench
