// What a recorder knows a tensor by: the value that it is, and the number of the memory that it lies in.
//
// Tensors and storages are known by their addresses. The tables hold them weakly, which keeps an address from being
// used again and holds no memory of a tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace plumbline::capture {

/// Numbers storages from 0, in the order in which they are met.
class StorageTable {
 public:
  /// The number of the tensor's memory, a new one where it is met first; -1 for a tensor without storage.
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

/// The value (an index into a recorder's graph) that each tensor is at present.
class TensorTable {
 public:
  std::optional<int32_t> find(const at::Tensor& tensor) const {
    const auto entry = values_.find(tensor.unsafeGetTensorImpl());
    return entry == values_.end() ? std::nullopt : std::optional(entry->second.value);
  }

  /// A tensor that was written in place becomes another value.
  void set(const at::Tensor& tensor, int32_t value) {
    values_.try_emplace(tensor.unsafeGetTensorImpl(), Entry{value, Weak(tensor.getIntrusivePtr())})
        .first->second.value = value;
  }

  /// Calls `visit(value, tensor)` for each tensor that still exists and whose value is `wanted(value)`, in no order.
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
