// The fuzzer of one reader, which PLUMBLINE_READER names; libFuzzer has main().
#include <cstdio>
#include <cstdlib>
#include <string>

#include "scripts/fuzz/readers.h"

namespace {

const plumbline::fuzz::Reader* reader = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("PLUMBLINE_READER");
  reader = plumbline::fuzz::find_reader(name == nullptr ? "" : name);
  if (reader != nullptr) return 0;
  std::fprintf(stderr, "PLUMBLINE_READER names no reader\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  plumbline::fuzz::accepts(*reader, {reinterpret_cast<const char*>(data), size});
  return 0;
}
