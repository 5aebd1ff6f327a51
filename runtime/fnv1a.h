// FNV-1a with 64 bits (Fowler, Noll and Vo). The function must never change: the tensors of the corpus are generated
// from it (conformance/corpus.lock pins their bytes; conformance/python/plumbline_recorder.py recomputes them), and
// run.json and the goldens of schedules contain its values.
#pragma once

#include <cstdint>
#include <string_view>

namespace plumbline {

/// Returns the hash of `bytes`. To hash data in pieces, pass the hash of the preceding pieces as `state`.
constexpr uint64_t fnv1a(std::string_view bytes, uint64_t state = 0xcbf29ce484222325) {
  for (const char c : bytes) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return state;
}

}  // namespace plumbline
