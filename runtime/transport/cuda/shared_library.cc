#include "runtime/transport/cuda/shared_library.h"

#include <dlfcn.h>

#include "runtime/error.h"

namespace plumbline::transport::cuda {
namespace {

void* open(const std::string& name, int more = 0) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | more); }

}  // namespace

SharedLibrary::SharedLibrary(const std::string& name, const std::string& advice) : name_(name), handle_(open(name)) {
  if (handle_ == nullptr) throw Error(std::string(dlerror()) + "; " + advice);
}

std::optional<SharedLibrary> SharedLibrary::find(const std::string& name, bool only_loaded) {
  if (void* handle = open(name, only_loaded ? RTLD_NOLOAD : 0)) return SharedLibrary(name, handle);
  return std::nullopt;
}

void* SharedLibrary::address(const char* symbol) const { return dlsym(handle_, symbol); }

void* SharedLibrary::require(const char* symbol, const char* advice) const {
  void* const found = address(symbol);
  if (found == nullptr) throw Error(name_ + " has no function " + symbol + "; " + advice);
  return found;
}

std::string SharedLibrary::path_of(const char* symbol) const {
  Dl_info info;
  void* const found = address(symbol);
  return found != nullptr && dladdr(found, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : name_;
}

}  // namespace plumbline::transport::cuda
