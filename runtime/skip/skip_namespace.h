// SkipNamespace: distinguishes skips of one name, so that a block with its own skips can appear in a model twice.
//
// After Namespace of torchgpipe (skip/namespace.py), with a running number in place of a uuid: namespaces are ordered
// by creation, and so equally on every rank that builds the same model.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace plumbline::skip {

class SkipNamespace {
 public:
  /// A namespace unlike any before; its copies are equal to it. Thread safe.
  SkipNamespace();
  /// The namespace of names that are not isolated; ordered before all others.
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
