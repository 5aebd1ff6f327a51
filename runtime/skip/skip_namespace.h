// SkipNamespace: tells skips of one name apart, so that a block with skips of its own can stand in a model twice.
//
// After Namespace of torchgpipe (skip/namespace.py), with a running number in place of a uuid: the order of namespaces
// is that in which they were made, and so the same on every rank that makes the same model.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace plumbline::skip {

class SkipNamespace {
 public:
  /// Another one than any before; its copies are equal to it. Safe from several threads.
  SkipNamespace();
  /// The one that names are in until they are isolated; before all others.
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
