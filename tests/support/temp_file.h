// A file of a test in the system's temporary folder, deleted with the object.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>

namespace tocsin {

class TempFile {
 public:
  // `name` ends the name of the file, whose beginning is different for every object and process.
  TempFile(const std::string& name, const std::string& text) : path_(path_of(name)) { std::ofstream(path_) << text; }
  ~TempFile() { std::remove(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  static std::string path_of(const std::string& name) {
    static std::atomic<int> last = 0;
    return testing::TempDir() + "tocsin_test." + std::to_string(::getpid()) + "." + std::to_string(++last) + "." + name;
  }
  const std::string path_;
};

// A token file with one administrator.
class TokenFile : public TempFile {
 public:
  explicit TokenFile(const std::string& token)
      : TempFile("tokens.toml", "[[token]]\nname = \"a\"\nrole = \"admin\"\ntoken = \"" + token + "\"\n") {}
};

}  // namespace tocsin
