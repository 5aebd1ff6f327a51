// SharedLibrary: a library that is loaded when it is needed, and stays loaded.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace plumbline::transport::cuda {

class SharedLibrary {
 public:
  /// Throws Error with the dynamic linker's words and `advice` if the library cannot be loaded.
  SharedLibrary(const std::string& name, const std::string& advice);
  /// Nothing if the library cannot be loaded or, with `only_loaded`, if the process has not loaded it before.
  static std::optional<SharedLibrary> find(const std::string& name, bool only_loaded);

  bool has(const char* symbol) const { return address(symbol) != nullptr; }

  /// Sets `to` to the function `symbol`. Throws Error, which ends with `advice`, if there is none.
  template <typename Function>
  void get(std::function<Function>& to, const char* symbol, const char* advice) const {
    to = reinterpret_cast<Function*>(require(symbol, advice));
  }

  /// The file in which `symbol` was found.
  std::string path_of(const char* symbol) const;

 private:
  SharedLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  void* address(const char* symbol) const;
  void* require(const char* symbol, const char* advice) const;

  std::string name_;
  void* handle_;
};

}  // namespace plumbline::transport::cuda
