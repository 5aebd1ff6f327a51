// KeptTensors: restores the tensors that a trial run of a model writes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/graph/equal_bits.h"
#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// The destructor restores each kept tensor in place: its memory, sizes and strides if a run gave it others (resize_,
/// t_), the content if it changed, and detaches the tensor if a run gave it a gradient history. Undefined and meta
/// tensors are ignored; all others must be strided.
class KeptTensors {
 public:
  KeptTensors() = default;
  /// For a run of `graph` on `inputs`: watches the graph's tensors and the inputs. Keeps the buffers from the start,
  /// because schemas do not reveal every write to a buffer.
  KeptTensors(const Graph& graph, const std::vector<at::Tensor>& inputs) {
    for (const Attribute& attribute : graph.attributes) {
      if (attribute.kind == AttributeKind::Buffer)
        keep(attribute.tensor);
      else
        watch(attribute.tensor);
    }
    for (const at::Tensor& input : inputs) watch(input);
  }
  ~KeptTensors() {
    const c10::NoGradGuard no_grad;
    for (Kept& kept : kept_) {
      // A computation into the tensor may have given it a history.
      if (!kept.required_grad && kept.tensor.requires_grad()) kept.tensor.detach_();
      if (!kept.lies_as_before()) kept.tensor.set_(kept.storage, kept.offset, kept.sizes, kept.strides);
      // Only changed tensors are written: a write bumps the version, and a pending backward would then fail.
      if (!have_equal_bits(kept.tensor, kept.before)) kept.tensor.copy_(kept.before);
    }
  }
  KeptTensors(const KeptTensors&) = delete;
  KeptTensors& operator=(const KeptTensors&) = delete;

  /// Saves a copy of the content of `tensor`.
  void keep(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.is_meta()) return;
    const c10::NoGradGuard no_grad;
    kept_.push_back({tensor, tensor.clone(), tensor.requires_grad(), tensor.storage(), tensor.storage_offset(),
                     tensor.sizes().vec(), tensor.strides().vec()});
  }

  bool keeps(const at::Tensor& tensor) const {
    return std::any_of(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.tensor.is_same(tensor); });
  }

  /// Keeps `tensor` before the first write to its memory.
  void watch(const at::Tensor& tensor) {
    if (tensor.defined() && tensor.has_storage()) watched_[tensor.storage().unsafeGetStorageImpl()].push_back(tensor);
  }

  /// `written`, which may be a view of a watched tensor, is about to be written.
  void before_write(const c10::IValue& written) {
    if (!written.isTensor() || !written.toTensor().has_storage()) return;
    const auto found = watched_.find(written.toTensor().storage().unsafeGetStorageImpl());
    if (found == watched_.end()) return;
    for (const at::Tensor& tensor : found->second) keep(tensor);
    watched_.erase(found);
  }

 private:
  struct Kept {
    at::Tensor tensor, before;
    bool required_grad;
    c10::Storage storage;
    int64_t offset;
    std::vector<int64_t> sizes, strides;

    bool lies_as_before() const {
      return tensor.storage().is_alias_of(storage) && tensor.storage_offset() == offset && tensor.sizes() == sizes &&
             tensor.strides() == strides;
    }
  };
  std::vector<Kept> kept_;
  std::unordered_map<const c10::StorageImpl*, std::vector<at::Tensor>> watched_;
};

}  // namespace plumbline::graph
