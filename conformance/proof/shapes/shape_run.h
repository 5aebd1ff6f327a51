// ShapeRun: executes operators on hollow tensors. Each gives new hollow tensors of the sizes, strides and dtypes that
// its kernel would give; nothing is computed. Views and writes do to addresses what they do on real tensors, so
// autograd, engine and transport run as always.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "runtime/capture/interpose.h"

namespace plumbline::proof {

/// Whether a call is executed on shapes: one of its tensors is hollow, or it has no tensors, and so makes new ones.
/// Other calls have tensors with memory only, such as numbers, and run as always.
bool is_hollow_call(std::span<const c10::IValue> arguments);

class ShapeRun : public capture::Interposer {
 public:
  /// The results of a call, which follow from its call key (terms/call_key.h).
  struct Effect;

  ShapeRun();
  ~ShapeRun() override;

  /// The effect of hollow calls with this key, found once, on the meta device (runtime/capture/meta). Throws InputError
  /// for an operator that asks for values, draws random numbers or changes the memory of a tensor, and for one without
  /// a meta kernel or a shape rule.
  const Effect& effect(const std::string& key, const c10::OperatorHandle& op, std::span<const c10::IValue> arguments);
  /// Executes a hollow call.
  static void execute(const Effect& effect, const c10::OperatorHandle& op, torch::jit::Stack* stack);

  /// Executes any call.
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

 private:
  static Effect effect_of(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments);

  std::string key_;                                                   ///< of the present call
  std::unordered_map<std::string, std::unique_ptr<Effect>> effects_;  ///< by call key
};

}  // namespace plumbline::proof
