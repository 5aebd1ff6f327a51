#include "runtime/capture/meta/meta_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <set>

#include "runtime/capture/interpose.h"
#include "runtime/capture/meta/shape_rules.h"
#include "runtime/error.h"

namespace plumbline::capture {
namespace {

using torch::jit::Stack;

constexpr int64_t kWritableElements = int64_t{1} << 16;

thread_local bool capturing_on_meta = false;

/// Lets calls made by a composite kernel reach the interposer too; its call() had disabled that.
class Parts {
 public:
  Parts() { c10::impl::tls_set_dispatch_key_excluded(detail::kInterposerKey, false); }
  ~Parts() { c10::impl::tls_set_dispatch_key_excluded(detail::kInterposerKey, true); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
};

/// Whether the call has a meta tensor as argument, or names the meta device.
bool any_meta(const c10::OperatorHandle& op, const Stack& stack) {
  bool any = false;
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
    any = any || (stack[i].isDevice() && stack[i].toDevice().is_meta());
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) { any = any || tensor.is_meta(); });
  }
  return any;
}

/// Presents tensors that have memory as meta tensors for the duration of a call.
class Likenesses {
 public:
  c10::IValue of(const c10::IValue& value) {
    if (value.isTensor()) return value.toTensor().defined() ? c10::IValue(of(value.toTensor())) : value;
    if (!value.isList()) return value;
    c10::impl::GenericList list = value.toList();
    for (size_t i = 0; i < list.size(); ++i) {
      const c10::IValue element = list.get(i);
      if (!element.isTensor() || !element.toTensor().defined() || element.toTensor().is_meta()) continue;
      if (list.use_count() > 1) list = list.copy();
      list.set(i, of(element.toTensor()));
    }
    return list;
  }

  /// In-place calls return an argument: replaces its stand-in by the real tensor.
  void put_back(c10::IValue& result) const {
    if (!result.isTensor()) return;
    for (const auto& [real, likeness] : pairs_)
      if (likeness.is_same(result.toTensor())) {
        result = real;
        return;
      }
  }

 private:
  at::Tensor of(const at::Tensor& tensor) {
    if (tensor.is_meta()) return tensor;
    for (const auto& [real, likeness] : pairs_)
      if (real.is_same(tensor)) return likeness;
    const at::Tensor meta =
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta).pinned_memory(false));
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) meta.unsafeGetTensorImpl()->set_wrapped_number(true);
    pairs_.emplace_back(tensor, meta);
    return meta;
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

bool depends_on_data(const std::string& name) {
  static const std::set<std::string> names = {
      "aten::nonzero",      "aten::masked_select", "aten::_local_scalar_dense", "aten::equal",
      "aten::_unique",      "aten::_unique2",      "aten::unique_dim",          "aten::unique_consecutive",
      "aten::bincount",     "aten::is_nonzero",    "aten::repeat_interleave",   "aten::unique_dim_consecutive",
      "aten::_assert_async"};
  return names.contains(name);
}

std::string no_path_text(const c10::OperatorHandle& op) {
  const std::string name = c10::toString(op.operator_name());
  if (depends_on_data(op.schema().name()))
    return name +
           " asks for values, on which its result depends, and a meta tensor has none; keep shapes static (where() "
           "and masked_fill() in place of masks and indices computed from data), or capture on a real device";
  return name +
         " cannot run on the meta device: LibTorch has no meta kernel for it here, and there is no shape rule; give "
         "it one by plumbline::capture::add_shape_rule(\"" +
         name + "\", ...), or capture on a real device";
}

std::vector<c10::IValue> results_of(const ShapeRule& rule, const c10::OperatorHandle& op, const Stack& stack) {
  const size_t count = op.schema().arguments().size();
  std::vector<c10::IValue> results = rule(std::span(stack).last(count));
  if (results.size() != op.schema().returns().size())
    throw InputError("shape rule: the rule of '" + c10::toString(op.operator_name()) + "' gave " +
                     std::to_string(results.size()) + " results; the operator returns " +
                     std::to_string(op.schema().returns().size()));
  for (size_t i = 0; i < results.size(); ++i) {
    const auto is_result = [&](const c10::IValue& argument) {
      return argument.isTensor() && argument.toTensor().is_same(results[i].toTensor());
    };
    const auto arguments = std::span(stack).last(count);
    if (is_written(op.schema().returns()[i]) && std::none_of(arguments.begin(), arguments.end(), is_result))
      throw InputError("shape rule: the rule of '" + c10::toString(op.operator_name()) +
                       "' must return the argument that the operator writes");
  }
  return results;
}

/// An in-place operator that leaves sizes and type unchanged needs no kernel; one that changes them has one.
bool only_writes(const c10::FunctionSchema& schema) {
  return schema.name().ends_with('_') && schema.returns().size() == 1 && !schema.arguments().empty() &&
         is_written(schema.arguments()[0]);
}

/// Runs the kernel of one call on the meta device, or its shape rule.
void run_on_meta(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size(), first = stack->size() - count;
  Likenesses likenesses;
  for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = likenesses.of((*stack)[i]);
  const auto has = [&](c10::DispatchKey key) { return op.hasKernelForDispatchKey(key); };
  {
    const Parts parts;
    if (const auto rule = find_shape_rule(c10::toString(op.operator_name()))) {
      std::vector<c10::IValue> results = results_of(*rule, op, *stack);
      torch::jit::drop(*stack, count);
      for (c10::IValue& result : results) stack->push_back(std::move(result));
    } else if (has(c10::DispatchKey::Meta) || has(c10::DispatchKey::CompositeExplicitAutograd) ||
               has(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
               has(c10::DispatchKey::CompositeImplicitAutograd)) {
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
    } else if (only_writes(op.schema())) {
      torch::jit::drop(*stack, count - 1);
    } else {
      throw detail::NoMetaPath(no_path_text(op));
    }
  }
  for (size_t i = first; i < stack->size(); ++i) likenesses.put_back((*stack)[i]);
}

/// The history of results whose producer has no formula.
class WithoutFormula : public torch::autograd::Function<WithoutFormula> {
 public:
  static std::vector<at::Tensor> forward(torch::autograd::AutogradContext*, const at::Tensor& /*input*/,
                                         const std::vector<at::Tensor>* results) {
    return *results;
  }
  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext*, const std::vector<at::Tensor>&) {
    throw Error("meta capture: backward through what a shape rule made; run the graph on real tensors");
  }
};

/// Gives a history to floating results that should have one but do not.
void add_history(const std::vector<at::Tensor>& arguments, std::vector<c10::IValue>& results) {
  const auto input =
      std::find_if(arguments.begin(), arguments.end(), [](const at::Tensor& t) { return t.requires_grad(); });
  if (!c10::GradMode::is_enabled() || input == arguments.end()) return;
  std::vector<at::Tensor> fresh;
  for (const c10::IValue& result : results)
    for_each_tensor(result, [&](const at::Tensor& t) {
      const bool given =
          std::any_of(arguments.begin(), arguments.end(), [&](const at::Tensor& a) { return a.is_same(t); });
      if (!given && !t.requires_grad() && (t.is_floating_point() || t.is_complex())) fresh.push_back(t);
    });
  // An edge to one input suffices: no backward runs through it.
  if (!fresh.empty()) WithoutFormula::apply(*input, &fresh);
}

}  // namespace

class CaptureInterposer : public Interposer {
 public:
  void call(const c10::OperatorHandle& op, Stack* stack) override {
    if (any_meta(op, *stack)) return run_on_meta(op, stack);
    op.callBoxed(stack);
  }
};

/// Redirects every new tensor to meta.
class ConstructionInterposer : public Interposer {
 public:
  void call(const c10::OperatorHandle& op, Stack* stack) override {
    const auto& parameters = op.schema().arguments();
    const size_t first = stack->size() - parameters.size();
    bool takes_tensor = false, makes_meta = any_meta(op, *stack);
    for (size_t i = 0; i < parameters.size(); ++i)
      for_each_tensor((*stack)[first + i], [&](const at::Tensor&) { takes_tensor = true; });
    for (size_t i = 0; i < parameters.size(); ++i) {
      c10::IValue& argument = (*stack)[first + i];
      if (parameters[i].name() == "device" && !(takes_tensor && argument.isNone())) {
        argument = c10::Device(at::kMeta);
        makes_meta = true;
      } else if (parameters[i].name() == "pin_memory") {
        argument = c10::IValue();
      }
    }
    if (!makes_meta) return op.callBoxed(stack);
    try {
      run_on_meta(op, stack);
    } catch (const detail::NoMetaPath& error) {
      throw InputError(std::string("meta device: ") + error.what());
    }
    if (op.schema().name() == "aten::empty") guard_memory(stack->back().toTensor());
  }

 private:
  /// Raw access must not meet a null pointer. at::tensor() writes a list of numbers to an empty tensor of one
  /// dimension; untouched memory costs nothing.
  static void guard_memory(const at::Tensor& made) {
    c10::StorageImpl* storage = made.storage().unsafeGetStorageImpl();
    if (made.dim() == 1 && made.numel() <= kWritableElements)
      storage->set_data_ptr_noswap(c10::GetCPUAllocator()->allocate(made.nbytes()));
    else
      storage->set_throw_on_mutable_data_ptr();
  }
};

class MetaDeviceScope::Implementation {
 public:
  Implementation() : scope_(interposer_) {}

 private:
  ConstructionInterposer interposer_;
  InterposerScope scope_;
};

MetaDeviceScope::MetaDeviceScope() : implementation_(std::make_unique<Implementation>()) {}
MetaDeviceScope::~MetaDeviceScope() = default;

namespace detail {

class MetaCaptureScope::Implementation {
 public:
  Implementation() : scope_(interposer_) { capturing_on_meta = true; }
  ~Implementation() { capturing_on_meta = false; }

 private:
  CaptureInterposer interposer_;
  InterposerScope scope_;
};

MetaCaptureScope::MetaCaptureScope() : implementation_(std::make_unique<Implementation>()) {}
MetaCaptureScope::~MetaCaptureScope() = default;

void run_on_meta_device(const c10::OperatorHandle& op, Stack* stack) {
  CaptureInterposer parts;
  const InterposerScope scope(parts);
  run_on_meta(op, stack);
}

bool stand_in_for_composition(const c10::OperatorHandle& op, Stack* stack) {
  if (!capturing_on_meta || !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) return false;
  const auto rule = find_shape_rule(c10::toString(op.operator_name()));
  if (!rule || !any_meta(op, *stack)) return false;
  const size_t count = op.schema().arguments().size();
  std::vector<c10::IValue> results = results_of(*rule, op, *stack);
  std::vector<at::Tensor> arguments;
  for (size_t i = stack->size() - count; i < stack->size(); ++i)
    for_each_tensor((*stack)[i], [&](const at::Tensor& tensor) { arguments.push_back(tensor); });
  add_history(arguments, results);
  torch::jit::drop(*stack, count);
  for (c10::IValue& result : results) stack->push_back(std::move(result));
  return true;
}

}  // namespace detail
}  // namespace plumbline::capture
