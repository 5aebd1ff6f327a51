// Oracles in another precision than the case's: float64 for bounded truth.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "reference/case.h"
#include "runtime/capture/interpose.h"

namespace torch::nn {
class Module;
}

namespace plumbline::reference {

/// While it lives, no interposer of this thread sees an operator call: interposers measure or disturb the computation,
/// not the preparation of its data.
class Unobserved {
 public:
  Unobserved() : scope_(passes_on_) {}

 private:
  class PassesOn : public capture::Interposer {
   public:
    void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override { op.callBoxed(stack); }
  };
  PassesOn passes_on_;
  capture::InterposerScope scope_;
};

/// Converts the floating-point parameters and buffers of `module` in place; nullopt: leaves them. (Module::to would
/// also convert integer counters.)
void convert(torch::nn::Module& module, std::optional<Dtype> dtype);

/// A floating-point tensor in `dtype`; nullopt, an undefined tensor, or one of integers: `tensor` itself.
at::Tensor converted(const at::Tensor& tensor, std::optional<Dtype> dtype);

}  // namespace plumbline::reference
