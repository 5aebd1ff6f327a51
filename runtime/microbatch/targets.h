// Targets: the tensors with which a loss function compares the outputs of a model.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "runtime/error.h"

namespace plumbline::microbatch {

/// The targets of a batch or of a micro-batch, in the order in which the loss function reads them; usually there is
/// one, or none. A tensor converts to its Targets, and back, so that code with one target reads and writes tensors.
class Targets {
 public:
  Targets() = default;
  /// No target if `one` is undefined.
  Targets(at::Tensor one) {  // NOLINT(google-explicit-constructor)
    if (one.defined()) tensors_.push_back(std::move(one));
  }
  /// No target for one undefined tensor. Throws InputError if one of several is undefined.
  Targets(std::vector<at::Tensor> several)  // NOLINT(google-explicit-constructor)
      : tensors_(std::move(several)) {
    if (tensors_.size() == 1 && !tensors_[0].defined()) tensors_.clear();
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (!tensors_[i].defined())
        throw InputError("target " + std::to_string(i) + " of " + std::to_string(tensors_.size()) +
                         " is undefined; give all targets or none");
  }
  Targets(std::initializer_list<at::Tensor> several) : Targets(std::vector<at::Tensor>(several)) {}

  bool defined() const { return !tensors_.empty(); }
  size_t size() const { return tensors_.size(); }
  const at::Tensor& operator[](size_t i) const { return tensors_[i]; }
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }

  /// The target, undefined if there is none. Throws InputError if there are several.
  const at::Tensor& one() const& {
    static const at::Tensor none;
    if (tensors_.size() > 1)
      throw InputError("one target is read where there are " + std::to_string(tensors_.size()) +
                       "; let the loss function take plumbline::Targets");
    return tensors_.empty() ? none : tensors_[0];
  }
  at::Tensor one() && { return std::as_const(*this).one(); }
  operator const at::Tensor&() const& { return one(); }            // NOLINT(google-explicit-constructor)
  operator at::Tensor() && { return std::as_const(*this).one(); }  // NOLINT(google-explicit-constructor)

  /// The results of `change` for each target.
  template <class Change>
  Targets map(Change&& change) const {
    std::vector<at::Tensor> changed;
    for (const at::Tensor& target : tensors_) changed.push_back(change(target));
    return changed;
  }

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace plumbline::microbatch

namespace plumbline {
using microbatch::Targets;
}  // namespace plumbline
