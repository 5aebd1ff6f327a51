// FNV-1a with 64 bits (Fowler, Noll and Vo). It must never change: tensors of the corpus are drawn from it (the bytes
// that conformance/corpus.lock pins, computed anew in conformance/python/plumbline_recorder.py), and run.json and the
// goldens of schedules hold its values.
#pragma once

#include <cstdint>
#include <string_view>

namespace plumbline {

/// Of `bytes` behind those that gave `state`.
constexpr uint64_t fnv1a(std::string_view bytes, uint64_t state = 0xcbf29ce484222325) {
  for (const char c : bytes) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return state;
}

}  // namespace plumbline
