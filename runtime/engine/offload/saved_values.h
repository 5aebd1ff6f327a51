// SavedValues: the tensors that autograd keeps between a forward and its backward, so that their memory can be taken
// away and given back.
//
// While a Recording is alive, each tensor that an autograd node saves on this thread is wrapped by hooks of autograd's
// saved tensors (torch::autograd::SavedVariableHooks), whatever the node: operators', recomputed blocks', partitioned
// stages', halves'. A value that the node has freed is forgotten.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plumbline::engine {

/// A tensor whose memory can be taken away; sizes, strides and dtype stay.
class SavedValue {
 public:
  /// This class removes the storage from the TensorImpl of `tensor`, so nothing else may use this TensorImpl while the
  /// memory is away. `version`: the counter of in-place changes that all tensors of the memory share.
  SavedValue(at::Tensor tensor, const c10::VariableVersion& version)
      : tensor_(std::move(tensor)), version_(version), saved_version_(version.current_version()) {}

  /// Throws Error while the memory is away, and if it has changed in place since the tensor was saved: autograd checks
  /// this only for tensors that it holds itself.
  at::Tensor get() const;

  /// Null if the memory is away, or the tensor has none (a sparse one).
  const c10::StorageImpl* memory() const;
  c10::Storage storage() const { return tensor_.storage(); }

  /// Drops the memory, which is in block `block` from now on.
  void take_away(int block);
  /// -1: the memory is here.
  int block() const { return block_; }
  /// The inverse of take_away(): `memory` has the same content as before.
  void give_back(c10::Storage memory);

 private:
  at::Tensor tensor_;
  int block_ = -1;
  c10::VariableVersion version_;
  uint32_t saved_version_;
};

/// The values of one stage and micro-batch.
class SavedValues {
 public:
  /// Records into `values` while alive, unless it is null. At most one is alive on a thread.
  class Recording {
   public:
    explicit Recording(SavedValues* values);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
  };

  void add(const std::shared_ptr<SavedValue>& value) { values_.push_back(value); }
  /// The values that a node still keeps.
  std::vector<std::shared_ptr<SavedValue>> alive();
  void clear() { values_.clear(); }

 private:
  std::vector<std::weak_ptr<SavedValue>> values_;
};

}  // namespace plumbline::engine
