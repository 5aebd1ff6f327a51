// The tables of a recorder: which value of the graph a tensor is, and the number of its storage.
//
// Tensors and storages are identified by address. Weak references keep an address from being reused without keeping the
// memory of the tensor alive.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace plumbline::capture {

/// Numbers storages from 0, in the order in which number_of() first sees them.
class StorageTable {
 public:
  /// Returns the number of the tensor's storage; a new storage gets the next number. -1 for a tensor without storage.
  int32_t number_of(const at::Tensor& tensor) {
    if (!tensor.has_storage()) return -1;
    c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
    const auto known = numbers_.find(storage);
    if (known != numbers_.end()) return known->second.number;
    return numbers_.emplace(storage, Entry{size(), Weak(Strong::reclaim_copy(storage))}).first->second.number;
  }

  std::optional<int32_t> find(const at::Tensor& tensor) const {
    if (!tensor.has_storage()) return std::nullopt;
    const auto entry = numbers_.find(tensor.storage().unsafeGetStorageImpl());
    return entry == numbers_.end() ? std::nullopt : std::optional(entry->second.number);
  }

  int32_t size() const { return static_cast<int32_t>(numbers_.size()); }

 private:
  using Strong = c10::intrusive_ptr<c10::StorageImpl>;
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Entry {
    int32_t number;
    Weak storage;
  };
  std::unordered_map<const c10::StorageImpl*, Entry> numbers_;
};

/// The current value of each tensor, as an index in Graph::values of the recorder's graph.
class TensorTable {
 public:
  std::optional<int32_t> find(const at::Tensor& tensor) const {
    const auto entry = values_.find(tensor.unsafeGetTensorImpl());
    return entry == values_.end() ? std::nullopt : std::optional(entry->second.value);
  }

  /// Sets the tensor's current value; replaces an earlier one, since a tensor written in place becomes a new value.
  void set(const at::Tensor& tensor, int32_t value) {
    values_.try_emplace(tensor.unsafeGetTensorImpl(), Entry{value, Weak(tensor.getIntrusivePtr())})
        .first->second.value = value;
  }

  /// Calls `visit(value, tensor)`, in no particular order, for each tensor that still exists and whose value satisfies
  /// `wanted(value)`.
  template <class Wanted, class Visit>
  void for_each_alive(const Wanted& wanted, const Visit& visit) const {
    for (const auto& [address, entry] : values_) {
      if (!wanted(entry.value)) continue;
      if (auto alive = entry.tensor.lock()) visit(entry.value, at::Tensor(std::move(alive)));
    }
  }

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, at::UndefinedTensorImpl>;
  struct Entry {
    int32_t value;
    Weak tensor;
  };
  std::unordered_map<const c10::TensorImpl*, Entry> values_;
};

}  // namespace plumbline::capture
