#include "conformance/proof/shapes/shape_run.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "conformance/proof/shapes/hollow_memory.h"
#include "conformance/proof/terms/call_key.h"
#include "conformance/proof/terms/normalisations.h"
#include "runtime/capture/meta/meta_device.h"
#include "runtime/error.h"

namespace plumbline::proof {
namespace {

using torch::jit::Stack;

std::span<const c10::IValue> arguments_of(const c10::OperatorHandle& op, const Stack& stack) {
  return std::span(stack).last(op.schema().arguments().size());
}

/// Its results show the memory of an argument; those of the second kind do not declare it.
bool makes_views(const c10::FunctionSchema& schema) {
  static const std::set<std::string> undeclared = {"aten::_unsafe_view", "aten::unsafe_chunk", "aten::unsafe_split",
                                                   "aten::unsafe_split_with_sizes"};
  return undeclared.contains(schema.name()) || std::ranges::any_of(schema.returns(), capture::is_view);
}

bool asks_for_values(const std::string& op) {
  static const std::set<std::string> all = {"aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero",
                                            "aten::allclose"};
  return all.contains(op);
}

bool changes_memory(const std::string& op) {
  static const std::set<std::string> all = {"aten::set_", "aten::resize_", "aten::resize_as_", "aten::set_data"};
  return all.contains(op);
}

size_t written_argument(const c10::FunctionSchema& schema, const c10::Argument& result) {
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->beforeSets() == result.alias_info()->beforeSets()) return i;
  }
  throw InputError(schema.name() + ": a result is written in place, but no argument is");
}

/// The call on the meta device.
Stack inferred(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments) {
  Stack stack(arguments.begin(), arguments.end());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = op.schema().arguments()[i].name();
    if (name == "device") stack[i] = c10::Device(c10::kMeta);
    if (name == "pin_memory") stack[i] = c10::IValue();
  }
  try {
    capture::detail::run_on_meta_device(op, &stack);
  } catch (const capture::detail::NoMetaPath& error) {
    throw InputError(std::string("proof on shapes: ") + error.what());
  }
  return stack;
}

}  // namespace

bool is_hollow_call(std::span<const c10::IValue> arguments) {
  bool any = false, hollow = false;
  for (const c10::IValue& argument : arguments)
    capture::for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (!tensor.has_storage()) return;
      any = true;
      hollow = hollow || is_hollow(tensor.storage().data());
    });
  return hollow || !any;
}

struct ShapeRun::Effect {
  struct Made {
    std::vector<int64_t> sizes, strides;
    c10::ScalarType dtype = c10::ScalarType::Undefined;  ///< of an undefined tensor
  };
  bool by_kernel = false;  ///< the kernel touches no elements
  std::vector<Made> made;
  std::vector<std::optional<size_t>> written;  ///< by result: the argument that it is, if it is not made
};

ShapeRun::ShapeRun() = default;
ShapeRun::~ShapeRun() = default;

ShapeRun::Effect ShapeRun::effect_of(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments) {
  const c10::FunctionSchema& schema = op.schema();
  if (asks_for_values(schema.name()) || changes_memory(schema.name()))
    throw InputError("proof on shapes: " + schema.name() +
                     (changes_memory(schema.name()) ? " changes memory" : " asks for values") +
                     ", which hollow tensors do not have");
  if (op.hasTag(at::Tag::nondeterministic_seeded) && draws(schema, arguments))
    throw InputError("proof on shapes: " + schema.name() + " draws random numbers");
  Effect effect;
  const bool tensors_only = std::ranges::all_of(schema.returns(), [](const c10::Argument& result) {
    return result.type()->isSubtypeOf(*c10::TensorType::get());
  });
  // Results that are not tensors are computed from sizes: the choice of a kernel of attention, for example. A view in
  // place changes sizes only.
  effect.by_kernel = !tensors_only || makes_views(schema) || op.hasTag(at::Tag::inplace_view);
  const bool makes_list = std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.type()->isSubtypeOf(*c10::ListType::ofTensors()) && result.alias_info() == nullptr;
  });
  if (makes_list && !makes_views(schema)) throw InputError("proof on shapes: " + schema.name() + " makes a list");
  if (effect.by_kernel) return effect;
  for (const c10::Argument& result : schema.returns())
    effect.written.push_back(capture::is_written(result) ? std::optional(written_argument(schema, result))
                                                         : std::nullopt);
  if (std::ranges::all_of(effect.written, [](const auto& argument) { return argument.has_value(); })) return effect;
  const Stack results = inferred(op, arguments);
  for (const c10::IValue& result : results) {
    const at::Tensor& tensor = result.toTensor();
    if (tensor.defined())
      effect.made.push_back({tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()});
    else
      effect.made.push_back({});
  }
  return effect;
}

const ShapeRun::Effect& ShapeRun::effect(const std::string& key, const c10::OperatorHandle& op,
                                         std::span<const c10::IValue> arguments) {
  auto known = effects_.find(key);
  if (known == effects_.end()) known = effects_.emplace(key, std::make_unique<Effect>(effect_of(op, arguments))).first;
  return *known->second;
}

void ShapeRun::execute(const Effect& effect, const c10::OperatorHandle& op, Stack* stack) {
  if (effect.by_kernel) return op.callBoxed(stack);
  const std::span<const c10::IValue> arguments = arguments_of(op, *stack);
  c10::SmallVector<c10::IValue, 3> results;
  for (size_t i = 0; i < effect.written.size(); ++i) {
    if (effect.written[i]) {
      results.push_back(arguments[*effect.written[i]]);
      continue;
    }
    const Effect::Made& made = effect.made[i];
    results.emplace_back(
        made.dtype == c10::ScalarType::Undefined ? at::Tensor() : hollow_tensor(made.sizes, made.strides, made.dtype));
  }
  torch::jit::drop(*stack, arguments.size());
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

void ShapeRun::call(const c10::OperatorHandle& op, Stack* stack) {
  const std::span<const c10::IValue> arguments = arguments_of(op, *stack);
  if (!is_hollow_call(arguments)) return op.callBoxed(stack);
  write_call_key(key_, op, arguments);
  execute(effect(key_, op, arguments), op, stack);
}

}  // namespace plumbline::proof
