#include "runtime/error.h"

#include <cstdio>
#include <cstdlib>

namespace plumbline {

void check_failed(const char* condition, const char* file, int line, const std::string& context) {
  std::fprintf(stderr, "plumbline: internal error at %s:%d: %s does not hold: %s\n", file, line, condition,
               context.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace plumbline
