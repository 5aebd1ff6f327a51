// SkipNamespace: distinguishes skips of the same name, so that a block with skips can appear in a model twice.
//
// After Namespace of torchgpipe (skip/namespace.py), with a process-wide running number in place of a uuid: namespaces
// are ordered by creation, so processes that build the same model order them equally.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace plumbline::skip {

class SkipNamespace {
 public:
  /// Makes a new namespace, which differs from all earlier ones in this process and equals its copies. Thread-safe.
  SkipNamespace();
  /// The namespace of names that are not isolated; ordered before all other namespaces.
  static SkipNamespace common() { return SkipNamespace(0); }

  auto operator<=>(const SkipNamespace&) const = default;

 private:
  friend struct std::hash<SkipNamespace>;
  explicit SkipNamespace(uint64_t number) : number_(number) {}

  uint64_t number_;
};

}  // namespace plumbline::skip

template <>
struct std::hash<plumbline::skip::SkipNamespace> {
  size_t operator()(const plumbline::skip::SkipNamespace& ns) const noexcept {
    return std::hash<uint64_t>{}(ns.number_);
  }
};
