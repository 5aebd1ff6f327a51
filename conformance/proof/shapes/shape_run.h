// ShapeRun: executes operators on hollow tensors. Each gives new hollow tensors of the sizes, strides and dtypes that
// its kernel would give; nothing is computed. Views and writes do to addresses what they do on real tensors, so
// autograd, engine and transport run as always.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "runtime/capture/interpose.h"

namespace plumbline::proof {

/// The results of a call follow from its call key (terms/call_key.h) and is found once, on the meta device
/// (runtime/capture/meta). Factories make hollow tensors; a call with tensors of which none is hollow runs as always.
class ShapeRun : public capture::Interposer {
 public:
  ShapeRun();
  ~ShapeRun() override;

  /// Throws InputError for an operator that asks for values or draws random numbers, and for one without a meta kernel
  /// or a shape rule.
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

 private:
  struct Effect;
  static Effect effect_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  std::string key_;                                                   ///< of the present call
  std::unordered_map<std::string, std::unique_ptr<Effect>> effects_;  ///< by call key
};

}  // namespace plumbline::proof
