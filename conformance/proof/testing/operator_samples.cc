#include "conformance/proof/testing/operator_samples.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>

namespace plumbline::proof {
namespace {

using Arguments = std::vector<c10::IValue>;
using Sizes = SampleSizes;

c10::OperatorHandle handle(const std::string& name, const std::string& overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
}

/// Whole numbers from -6 to 6, without 0.
at::Tensor drawn(at::IntArrayRef sizes) {
  const at::Tensor numbers = at::randint(1, 7, sizes, at::kDouble);
  return at::where(at::randint(2, sizes) == 0, numbers, -numbers);
}
at::Tensor positive(at::IntArrayRef sizes) { return drawn(sizes).abs(); }
at::Tensor index_below(int64_t end, at::IntArrayRef sizes) { return at::randint(end, sizes, at::kLong); }
c10::IValue ints(std::vector<int64_t> values) { return c10::IValue(std::move(values)); }
c10::IValue none() { return {}; }
c10::IValue all_of(size_t count) {
  c10::List<bool> all;
  all.resize(count, true);
  return all;
}

/// An element-wise operator: tensors of one shape, the second broadcast if `broadcasts`, and plain numbers.
Arguments elementwise(const c10::FunctionSchema& schema, const Sizes& s, bool broadcasts) {
  Arguments arguments;
  int tensors = 0;
  for (const c10::Argument& argument : schema.arguments()) {
    const std::string type = argument.type()->str();
    const std::string& name = argument.name();
    if (type == "Tensor") {
      const at::Tensor tensor = broadcasts && tensors++ > 0 ? drawn({s.k}) : drawn({s.n, s.k});
      const bool truth = name == "condition" || name == "mask" || schema.name().find("bitwise") != std::string::npos;
      arguments.emplace_back(truth ? tensor > 0 : tensor);
    } else if (name == "is_result" || name == "self_is_result") {
      arguments.emplace_back(false);
    } else if (name == "alpha" || name == "scale" || name == "input_scale") {
      arguments.emplace_back(int64_t{1});
    } else if (type == "str") {
      arguments.emplace_back(std::string("none"));
    } else if (name == "rounding_mode") {
      arguments.emplace_back(std::string("floor"));
    } else if (name == "max" || name == "max_val") {
      arguments.emplace_back(int64_t{3});
    } else {
      arguments.emplace_back(int64_t{2});
    }
  }
  return arguments;
}

void add_elementwise(std::vector<OperatorSample>& all) {
  for (const char* name :
       {// of one tensor
        "abs", "neg", "reciprocal", "floor", "ceil", "round", "trunc", "sgn", "sign", "sqrt", "rsqrt", "exp", "expm1",
        "log", "log1p", "sin", "cos", "erf",
        // activations
        "tanh", "tanh_backward", "sigmoid", "sigmoid_backward", "relu", "threshold_backward", "gelu", "gelu_backward",
        "silu", "silu_backward", "elu", "elu_backward", "leaky_relu", "leaky_relu_backward", "softplus",
        "softplus_backward", "hardtanh", "hardtanh_backward",
        // logic of one tensor
        "logical_not", "logical_and", "logical_or", "bitwise_not", "isnan", "isinf",
        // bounds
        "clamp", "clamp_min", "clamp_max", "maximum", "minimum",
        // arithmetic
        "addcmul", "addcdiv", "add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "div.Tensor_mode", "add.Scalar",
        "sub.Scalar", "mul.Scalar", "div.Scalar", "lerp.Scalar", "lerp.Tensor", "where.self", "masked_fill.Scalar",
        "remainder.Scalar", "remainder.Tensor", "fmod.Scalar", "pow.Tensor_Scalar", "pow.Tensor_Tensor",
        // comparisons, logic
        "eq.Scalar", "eq.Tensor", "ne.Scalar", "ne.Tensor", "lt.Scalar", "lt.Tensor", "le.Scalar", "le.Tensor",
        "gt.Scalar", "gt.Tensor", "ge.Scalar", "ge.Tensor", "bitwise_and.Tensor", "bitwise_or.Tensor"}) {
    const std::string given = name;
    const size_t dot = given.find('.');
    const std::string base = "aten::" + given.substr(0, dot);
    const std::string overload = dot == std::string::npos ? "" : given.substr(dot + 1);
    const c10::FunctionSchema& schema = handle(base, overload).schema();
    const bool pair = overload.starts_with("Tensor") && given.find("lerp") == std::string::npos;
    for (const bool broadcasts : {false, true})
      if (pair || !broadcasts)
        all.push_back(
            {base, overload, [&schema, broadcasts](const Sizes& s) { return elementwise(schema, s, broadcasts); }});
  }
}

std::vector<OperatorSample> make_samples() {
  const std::vector<OperatorSample> special = {
      {"aten::mm", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), drawn({s.k, s.m})}; }},
      {"aten::mv", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), drawn({s.k})}; }},
      {"aten::dot", "", [](const Sizes& s) { return Arguments{drawn({s.k}), drawn({s.k})}; }},
      {"aten::bmm", "", [](const Sizes& s) { return Arguments{drawn({s.n, 2, s.k}), drawn({s.n, s.k, s.m})}; }},
      {"aten::addmm", "",
       [](const Sizes& s) { return Arguments{drawn({s.m}), drawn({s.n, s.k}), drawn({s.k, s.m}), 1, 1}; }},
      {"aten::addmm", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.m}), drawn({s.n, s.k}), drawn({s.k, s.m}), 1, 1}; }},
      {"aten::baddbmm", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, 1, s.m}), drawn({s.n, 2, s.k}), drawn({s.n, s.k, s.m}), 1, 1};
       }},
      // Sums and other reductions.
      {"aten::sum", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), none()}; }},
      {"aten::sum", "dim_IntList",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({0}), false, none()}; }},
      {"aten::sum", "dim_IntList",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k, s.m}), ints({-1, 0}), true, none()}; }},
      {"aten::mean", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), none()}; }},
      {"aten::mean", "dim", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({1}), true, none()}; }},
      {"aten::mean", "dim", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({0}), false, none()}; }},
      {"aten::amax", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({1}), false}; }},
      {"aten::amin", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({0}), true}; }},
      {"aten::max", "dim", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 1, false}; }},
      {"aten::min", "dim", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), -1, false}; }},
      {"aten::argmax", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 1, false}; }},
      {"aten::argmin", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 0, false}; }},
      {"aten::prod", "dim_int", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 1, false, none()}; }},
      {"aten::var", "correction", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({1}), 0, false}; }},
      {"aten::std", "correction", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({1}), 0, false}; }},
      {"aten::var_mean", "correction",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({1}), 0, false}; }},
      {"aten::logsumexp", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({1}), false}; }},
      {"aten::linalg_vector_norm", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 2, ints({1}), false, none()}; }},
      {"aten::any", "dim", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}) > 2, 1, false}; }},
      {"aten::all", "dim", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}) > -2, 1, false}; }},
      {"aten::cumsum", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 1, none()}; }},
      {"aten::topk", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 1, 1, true, true}; }},
      {"aten::sort", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 1, false}; }},
      {"aten::_softmax", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 1, false}; }},
      {"aten::_log_softmax", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), -1, false}; }},
      {"aten::_softmax_backward_data", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), drawn({s.n, s.k}), 1, c10::kDouble}; }},
      {"aten::_log_softmax_backward_data", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), drawn({s.n, s.k}), 1, c10::kDouble}; }},
      // Choices and arrangements of elements.
      {"aten::cat", "",
       [](const Sizes& s) { return Arguments{std::vector<at::Tensor>{drawn({s.n, s.k}), drawn({s.n, 1})}, 1}; }},
      {"aten::stack", "",
       [](const Sizes& s) { return Arguments{std::vector<at::Tensor>{drawn({s.n, s.k}), drawn({s.n, s.k})}, 1}; }},
      {"aten::slice_backward", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({s.n, s.k + 2}), 1, 1, s.k + 1, 1}; }},
      {"aten::select_backward", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({s.n, 3, s.k}), 1, 2}; }},
      {"aten::flip", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({1})}; }},
      {"aten::roll", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({1}), ints({-1})}; }},
      {"aten::constant_pad_nd", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), ints({1, 0, 0, 0}), 0}; }},
      {"aten::constant_pad_nd", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k + 1}), ints({-1, 0}), 0}; }},
      {"aten::tril", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k, s.m}), 0}; }},
      {"aten::triu", "", [](const Sizes& s) { return Arguments{drawn({s.n, s.k, s.m}), 1}; }},
      {"aten::gather", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 1, index_below(s.k, {s.n, s.m}), false}; }},
      {"aten::gather", "",
       [](const Sizes& s) { return Arguments{drawn({s.n + 1, s.k}), 1, index_below(s.k, {s.n, s.m}), false}; }},
      {"aten::index_select", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.k}), 1, index_below(s.k, {s.m})}; }},
      {"aten::index", "Tensor",
       [](const Sizes& s) {
         c10::List<std::optional<at::Tensor>> indices;
         indices.push_back(index_below(s.k, {s.n}));
         return Arguments{drawn({s.k, s.m}), indices};
       }},
      {"aten::embedding", "",
       [](const Sizes& s) { return Arguments{drawn({5, s.k}), index_below(5, {s.n, s.m}), -1, false, false}; }},
      {"aten::embedding_dense_backward", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.m, s.k}), index_below(5, {s.n, s.m}), 5, -1, false}; }},
      {"aten::pixel_shuffle", "", [](const Sizes& s) { return Arguments{drawn({s.n, 4, 2, 2}), 2}; }},
      {"aten::pixel_unshuffle", "", [](const Sizes& s) { return Arguments{drawn({s.n, 1, 4, 4}), 2}; }},
      // Convolutions and pooling.
      {"aten::convolution", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, 2, 4, 4}),
                          drawn({3, 2, 3, 3}),
                          drawn({3}),
                          ints({1, 1}),
                          ints({1, 1}),
                          ints({1, 1}),
                          false,
                          ints({0, 0}),
                          1};
       }},
      {"aten::convolution_backward", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, 3, 4, 4}),
                          drawn({s.n, 2, 4, 4}),
                          drawn({3, 2, 3, 3}),
                          ints({3}),
                          ints({1, 1}),
                          ints({1, 1}),
                          ints({1, 1}),
                          false,
                          ints({0, 0}),
                          1,
                          all_of(3)};
       }},
      {"aten::avg_pool2d", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, s.m, 4, 4}), ints({2, 2}), ints({2, 2}), ints({0, 0}), false, true, none()};
       }},
      {"aten::avg_pool2d_backward", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, s.m, 2, 2}),
                          drawn({s.n, s.m, 4, 4}),
                          ints({2, 2}),
                          ints({2, 2}),
                          ints({0, 0}),
                          false,
                          true,
                          none()};
       }},
      {"aten::max_pool2d_with_indices", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, s.m, 4, 4}), ints({2, 2}), ints({2, 2}), ints({0, 0}), ints({1, 1}), false};
       }},
      {"aten::max_pool2d_with_indices_backward", "",
       [](const Sizes& s) {
         const at::Tensor x = drawn({s.n, s.m, 4, 4});
         const at::Tensor indices = std::get<1>(at::max_pool2d_with_indices(x, {2, 2}, {2, 2}));
         return Arguments{
             drawn({s.n, s.m, 2, 2}), x, ints({2, 2}), ints({2, 2}), ints({0, 0}), ints({1, 1}), false, indices};
       }},
      {"aten::_adaptive_avg_pool2d", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.m, 4, 4}), ints({2, 2})}; }},
      {"aten::_adaptive_avg_pool2d_backward", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.m, 2, 2}), drawn({s.n, s.m, 4, 4})}; }},
      {"aten::upsample_nearest2d", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.m, 2, 2}), ints({4, 4}), none(), none()}; }},
      {"aten::upsample_nearest2d_backward", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, s.m, 4, 4}), ints({4, 4}), ints({s.n, s.m, 2, 2}), none(), none()};
       }},
      // Norms. Their backwards are polynomials in operands that are given here as whole numbers.
      {"aten::native_layer_norm", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, s.m, s.k}), ints({s.k}), drawn({s.k}), drawn({s.k}), 1e-5}; }},
      {"aten::native_layer_norm_backward", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, s.m, 4}),    drawn({s.n, s.m, 4}), ints({4}),  drawn({s.n, s.m, 1}),
                          positive({s.n, s.m, 1}), drawn({4}),           drawn({4}), all_of(3)};
       }},
      {"aten::native_batch_norm", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, 3, s.k}), drawn({3}), drawn({3}), drawn({3}), positive({3}), false, 0.1, 1e-5};
       }},
      {"aten::native_batch_norm", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, 3, s.k}), drawn({3}), drawn({3}), drawn({3}), positive({3}), true, 0.1, 1e-5};
       }},
      {"aten::native_batch_norm_backward", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, 3, s.k}),
                          drawn({s.n, 3, s.k}),
                          drawn({3}),
                          drawn({3}),
                          at::full({3}, 0.25, at::kDouble),
                          none(),
                          none(),
                          false,
                          0.0,
                          all_of(3)};
       }},
      {"aten::native_batch_norm_backward", "",
       [](const Sizes& s) {
         return Arguments{drawn({s.n, 3, s.k}), drawn({s.n, 3, s.k}), drawn({3}), none(), none(),
                          drawn({3}),           positive({3}),        true,       1e-5,   all_of(3)};
       }},
      {"aten::native_group_norm", "",
       [](const Sizes& s) { return Arguments{drawn({s.n, 4, s.k}), drawn({4}), drawn({4}), s.n, 4, s.k, 2, 1e-5}; }},
      {"aten::native_group_norm_backward", "",
       [](const Sizes& s) {
         return Arguments{
             drawn({s.n, 4, 4}), drawn({s.n, 4, 4}), drawn({s.n, 2}), positive({s.n, 2}), drawn({4}), s.n, 4, 4, 2,
             all_of(3)};
       }},
      // Attention.
      {"aten::_scaled_dot_product_flash_attention_for_cpu", "",
       [](const Sizes& s) {
         return Arguments{
             drawn({s.n, 2, 4, 8}), drawn({s.n, 2, 4, 8}), drawn({s.n, 2, 4, 8}), 0.0, true, none(), none()};
       }},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", "",
       [](const Sizes& s) {
         const at::Tensor q = drawn({s.n, 2, 4, 8}), k = drawn({s.n, 2, 4, 8}), v = drawn({s.n, 2, 4, 8});
         const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v);
         return Arguments{drawn({s.n, 2, 4, 8}), q, k, v, out, logsumexp, 0.0, false, none(), none()};
       }},
  };
  std::vector<OperatorSample> all = special;
  // Losses, with each reduction.
  for (const int64_t reduction : {at::Reduction::None, at::Reduction::Mean, at::Reduction::Sum}) {
    const auto gradient = [reduction](const Sizes& s) {
      return reduction == at::Reduction::None ? drawn({s.n, s.k}) : drawn({});
    };
    all.push_back({"aten::mse_loss", "",
                   [reduction](const Sizes& s) { return Arguments{drawn({s.n, s.k}), drawn({s.n, s.k}), reduction}; }});
    all.push_back({"aten::mse_loss", "",
                   [reduction](const Sizes& s) { return Arguments{drawn({s.n, s.k}), drawn({s.k}), reduction}; }});
    all.push_back({"aten::mse_loss_backward", "", [reduction, gradient](const Sizes& s) {
                     return Arguments{gradient(s), drawn({s.n, s.k}), drawn({s.n, s.k}), reduction};
                   }});
    for (const char* loss : {"aten::smooth_l1_loss", "aten::huber_loss"}) {
      all.push_back({loss, "", [reduction](const Sizes& s) {
                       return Arguments{drawn({s.n, s.k}), drawn({s.n, s.k}), reduction, 2.0};
                     }});
      all.push_back({loss + std::string("_backward"), "", [reduction, gradient](const Sizes& s) {
                       return Arguments{gradient(s), drawn({s.n, s.k}), drawn({s.n, s.k}), reduction, 2.0};
                     }});
    }
    all.push_back({"aten::nll_loss_forward", "", [reduction](const Sizes& s) {
                     return Arguments{drawn({s.n, s.k}), index_below(s.k, {s.n}), positive({s.k}), reduction, -100};
                   }});
    all.push_back({"aten::nll_loss_backward", "", [reduction](const Sizes& s) {
                     const at::Tensor loss = reduction == at::Reduction::None ? drawn({s.n}) : drawn({});
                     return Arguments{loss, drawn({s.n, s.k}), index_below(s.k, {s.n}), none(), reduction,
                                      -100, positive({}) + 8};
                   }});
  }
  add_elementwise(all);
  return all;
}

}  // namespace

const std::vector<OperatorSample>& operator_samples() {
  static const std::vector<OperatorSample> all = make_samples();
  return all;
}

std::string full_name(const OperatorSample& sample) {
  return sample.overload.empty() ? sample.name : sample.name + "." + sample.overload;
}

std::vector<at::Tensor> call_operator(const OperatorSample& sample, const std::vector<c10::IValue>& arguments) {
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  for (c10::IValue& value : stack)
    if (value.isTensor() && !value.toTensor().defined()) value = c10::IValue();  // an optional tensor
  handle(sample.name, sample.overload).callBoxed(stack);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) results.push_back(value.toTensor());
  return results;
}

std::vector<c10::IValue> mapped(const std::vector<c10::IValue>& arguments,
                                const std::function<at::Tensor(const at::Tensor&, size_t)>& visit) {
  Arguments result;
  size_t number = 0;
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) {
      result.emplace_back(visit(argument.toTensor(), number++));
    } else if (argument.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& tensor : argument.toTensorVector()) list.push_back(visit(tensor, number++));
      result.emplace_back(list);
    } else if (argument.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& item : argument.toListRef()) list.push_back(visit(item.toTensor(), number++));
      result.emplace_back(list);
    } else {
      result.push_back(argument);
    }
  }
  return result;
}

bool same_numbers(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  if (at::equal(a, b) || a.numel() == 0) return true;
  if (!a.is_floating_point()) return false;
  const at::Tensor largest = at::nan_to_num(a, 0.0, 0.0, 0.0).abs().max();
  const at::Tensor is_near = (a - b).abs() <= 2 * 512 * 0x1p-53 * largest;
  return ((a == b) | (a.isnan() & b.isnan()) | is_near).all().item<bool>();
}

}  // namespace plumbline::proof
