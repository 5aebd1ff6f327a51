#include "runtime/flops/flop_formulas.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace plumbline::flops {
namespace {

double volume(const Sizes& sizes, size_t from = 0) {
  double product = 1;
  for (size_t d = from; d < sizes.size(); ++d) product *= static_cast<double>(sizes[d]);
  return product;
}

bool flag(const CallSizes& call, size_t a) { return std::get<bool>(call.constants.at(a)); }
const std::vector<int64_t>& numbers(const CallSizes& call, size_t a) {
  return std::get<std::vector<int64_t>>(call.constants.at(a));
}

double last(const Sizes& sizes) { return sizes.empty() ? 1 : static_cast<double>(sizes.back()); }

/// Each element of the result is an inner product over the last dimension of argument A.
template <size_t A>
double inner_products(const CallSizes& call) {
  return 2 * call.result * last(call.tensors[A].at(0));
}

double addbmm(const CallSizes& call) { return 2 * volume(call.tensors[1].at(0)) * last(call.tensors[2].at(0)); }

double tensordot(const CallSizes& call) {
  const Sizes& a = call.tensors[0].at(0);
  double flops = 2 * call.result;
  for (int64_t d : numbers(call, 2)) flops *= static_cast<double>(a.at(d < 0 ? d + static_cast<int64_t>(a.size()) : d));
  return flops;
}

// --- convolutions: every position of the output (of a transposed one: of the input) meets one filter -----------------

template <size_t Weight>
double per_position(double positions, const CallSizes& call) {
  return 2 * positions * volume(call.tensors[Weight].at(0), 1);
}

double convolution_forward(const CallSizes& call) { return per_position<1>(call.result, call); }
double convolution_transposed(const CallSizes& call) { return per_position<1>(volume(call.tensors[0].at(0)), call); }

constexpr size_t kTransposed = 6, kBackwardTransposed = 7, kBackwardMask = 10;

double convolution(const CallSizes& call) {
  return flag(call, kTransposed) ? convolution_transposed(call) : convolution_forward(call);
}

/// (grad_output, input, weight, ...): the gradients of input and weight each take as many operations as the
/// convolution.
double convolution_backward(const CallSizes& call) {
  const bool transposed = flag(call, kBackwardTransposed);
  const std::vector<int64_t>& mask = numbers(call, kBackwardMask);
  return static_cast<double>(mask.at(0) + mask.at(1)) *
         per_position<2>(volume(call.tensors[transposed ? 1 : 0].at(0)), call);
}

// --- attention: products over queries x keys, of the width of a key or of a value ------------------------------------

template <size_t Query>
double attention_products(const CallSizes& call, double of_keys, double of_values) {
  const Sizes& query = call.tensors[Query].at(0);
  const Sizes& key = call.tensors[Query + 1].at(0);
  const double pairs = volume(query) / last(query) * static_cast<double>(key.at(key.size() - 2));
  return 2 * pairs * (of_keys * last(query) + of_values * last(call.tensors[Query + 2].at(0)));
}

double attention(const CallSizes& call) { return attention_products<0>(call, 1, 1); }
/// A fused backward computes the scores again, and then four products: towards value, scores, query and key.
double attention_backward(const CallSizes& call) { return attention_products<1>(call, 3, 2); }

// --- recurrent layers: each row of the input (a step of a sequence) meets each matrix once ---------------------------

double rows(const CallSizes& call) {
  const Sizes& input = call.tensors[0].at(0);
  return volume(input) / last(input);
}

/// The matrices are the last list of tensors; their biases have one dimension.
double recurrent_layers(const CallSizes& call) {
  double weights = 0;
  for (size_t a = call.tensors.size(); a-- > 1 && weights == 0;)
    if (call.tensors[a].size() > 1)
      for (const Sizes& sizes : call.tensors[a]) weights += sizes.size() == 2 ? volume(sizes) : 0;
  return 2 * rows(call) * weights;
}

template <size_t Input, size_t Hidden>
double recurrent_cell(const CallSizes& call) {
  return 2 * rows(call) * (volume(call.tensors[Input].at(0)) + volume(call.tensors[Hidden].at(0)));
}

double recurrent_layer_backward(const CallSizes& call) { return 2 * recurrent_cell<1, 2>(call); }

// --- einsum ----------------------------------------------------------------------------------------------------------

/// One operand's labels; those of an ellipsis are numbered from its right end, and are distinct from letters.
std::vector<int> einsum_labels(const std::string& term, size_t rank) {
  constexpr int kEllipsis = 256;
  const auto named = static_cast<size_t>(std::count_if(term.begin(), term.end(), [](char c) { return c != '.'; }));
  std::vector<int> labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] != '.') {
      labels.push_back(term[i]);
      continue;
    }
    i += 2;  // "..."
    for (size_t d = rank - named; d-- > 0;) labels.push_back(kEllipsis + static_cast<int>(d));
  }
  return labels;
}

/// The operands are contracted from left to right; a label that only one of two operands has, and that no later one
/// needs, is summed before the contraction. Without a sum, a product counts one.
double einsum(const CallSizes& call) {
  std::string equation = std::get<std::string>(call.constants.at(0));
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::vector<std::vector<int>> operands;
  std::map<int, double> size_of;
  std::map<int, int> occurrences;
  size_t begin = 0, ellipsis_rank = 0;
  for (const Sizes& sizes : call.tensors[1]) {
    const std::string term = left.substr(begin, left.find(',', begin) - begin);
    begin += term.size() + 1;
    operands.push_back(einsum_labels(term, sizes.size()));
    for (size_t d = 0; d < sizes.size(); ++d) {
      const int label = operands.back().at(d);
      ++occurrences[label];
      size_of[label] = std::max(size_of[label], static_cast<double>(sizes[d]));
      if (label >= 256) ellipsis_rank = std::max(ellipsis_rank, static_cast<size_t>(label - 255));
    }
  }
  std::set<int> output;
  if (arrow != std::string::npos) {
    const std::string right = equation.substr(arrow + 2);
    const auto letters =
        static_cast<size_t>(std::count_if(right.begin(), right.end(), [](char c) { return c != '.'; }));
    for (int label : einsum_labels(right, letters + ellipsis_rank)) output.insert(label);
  } else {
    for (const auto& [label, count] : occurrences)
      if (count == 1 || label >= 256) output.insert(label);
  }
  double flops = 0;
  std::set<int> so_far(operands.at(0).begin(), operands.at(0).end());
  for (size_t i = 1; i < operands.size(); ++i) {
    const std::set<int> next(operands[i].begin(), operands[i].end());
    std::set<int> wanted = output, all = so_far, kept;
    for (size_t k = i + 1; k < operands.size(); ++k) wanted.insert(operands[k].begin(), operands[k].end());
    all.insert(next.begin(), next.end());
    double products = 1;
    bool sums = false;
    for (int label : all) {
      const bool in_both = so_far.contains(label) && next.contains(label);
      if (!in_both && !wanted.contains(label)) continue;
      products *= size_of[label];
      sums = sums || !wanted.contains(label);
      if (wanted.contains(label)) kept.insert(label);
    }
    flops += (sums ? 2 : 1) * products;
    so_far = kept;
  }
  return flops;
}

std::unordered_map<std::string, FlopFormula> make_formulas() {
  std::unordered_map<std::string, FlopFormula> formulas;
  const auto add = [&](std::initializer_list<const char*> names, double (*flops)(const CallSizes&),
                       std::vector<size_t> factors) {
    for (const char* name : names) formulas["aten::" + std::string(name)] = {flops, factors};
  };
  add({"mm", "bmm", "_scaled_mm", "mv", "dot", "vdot", "inner", "matmul", "linalg_matmul", "linear"},
      &inner_products<0>, {0, 1});
  add({"addmm", "baddbmm", "addmv", "addmm_", "baddbmm_", "addmv_", "_addmm_activation"}, &inner_products<1>, {1, 2});
  add({"addbmm", "addbmm_"}, &addbmm, {1, 2});
  add({"tensordot"}, &tensordot, {0, 1});
  add({"einsum"}, &einsum, {1});
  add({"conv1d", "conv2d", "conv3d"}, &convolution_forward, {0, 1});
  add({"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}, &convolution_transposed, {0, 1});
  add({"convolution", "_convolution", "convolution_overrideable"}, &convolution, {0, 1});
  add({"convolution_backward"}, &convolution_backward, {});
  add({"scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu",
       "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
       "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_fused_attention_overrideable"},
      &attention, {0, 1, 2});
  add({"_scaled_dot_product_flash_attention_for_cpu_backward", "_scaled_dot_product_flash_attention_backward",
       "_scaled_dot_product_efficient_attention_backward", "_scaled_dot_product_cudnn_attention_backward",
       "_scaled_dot_product_fused_attention_overrideable_backward"},
      &attention_backward, {});
  add({"lstm", "gru", "rnn_tanh", "rnn_relu"}, &recurrent_layers, {0, 2, 3});
  add({"lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"}, &recurrent_cell<2, 3>, {0, 2, 3});
  add({"mkldnn_rnn_layer"}, &recurrent_cell<1, 2>, {0, 1});
  add({"mkldnn_rnn_layer_backward"}, &recurrent_layer_backward, {});
  return formulas;
}

}  // namespace

const FlopFormula* find_flop_formula(const std::string& name) {
  static const std::unordered_map<std::string, FlopFormula> formulas = make_formulas();
  const auto it = formulas.find(name);
  return it == formulas.end() ? nullptr : &it->second;
}

}  // namespace plumbline::flops
