// Calls of operators with small tensors of whole numbers, by which lemmas about operators are held against LibTorch.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

namespace plumbline::proof {

/// Sizes of dimensions; operands that share one have the same size.
struct SampleSizes {
  int64_t n = 3, k = 4, m = 2;
};

struct OperatorSample {
  std::string name, overload;
  /// Arguments, drawn anew by each call.
  std::function<std::vector<c10::IValue>(const SampleSizes&)> arguments;
};

/// At least one sample of every operator in a table of lemmas.
const std::vector<OperatorSample>& operator_samples();

/// "aten::name" or "aten::name.overload".
std::string full_name(const OperatorSample& sample);

/// All results; undefined ones too.
std::vector<at::Tensor> call_operator(const OperatorSample& sample, const std::vector<c10::IValue>& arguments);

/// `arguments` with what `visit` returns for each tensor and its number, which counts tensors as the operands of a term
/// do.
std::vector<c10::IValue> mapped(const std::vector<c10::IValue>& arguments,
                                const std::function<at::Tensor(const at::Tensor&, size_t)>& visit);

/// Equal sizes, and equal bits but for the rounding of the operators: each of the samples' results is a sum of at most
/// 512 rounded terms, so that two ways to compute it in float64 differ by at most 2 * 512 units roundoff of the
/// largest.
bool same_numbers(const at::Tensor& a, const at::Tensor& b);

}  // namespace plumbline::proof
