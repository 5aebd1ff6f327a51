#include "conformance/proof/rows/lemmas.h"

#include <ATen/core/Reduction.h>

#include <algorithm>
#include <numeric>

namespace plumbline::proof {
namespace {

size_t rank_of(const std::optional<Sizes>& sizes) { return sizes ? sizes->size() : 0; }
size_t rank(const OperatorCall& call, size_t operand) { return rank_of(call.operands.at(operand)); }

const c10::IValue& argument(const OperatorCall& call, const char* name) {
  return call.arguments.at(call.schema.argumentIndexWithName(name).value());
}

/// "abc", from the letter number `from` on.
std::string letters(size_t count, size_t from = 0) {
  std::string text(count, 'a');
  std::iota(text.begin(), text.end(), static_cast<char>('a' + from));
  return text;
}

std::string none(size_t rank) { return std::string(rank, 'X'); }

/// "naX" becomes "nXX" for 3 dimensions: a letter for the first dimensions, nothing claimed of the others.
std::string leading(size_t rank, size_t count) {
  count = std::min(rank, count);
  return letters(count) + none(rank - count);
}

size_t wrapped(int64_t dim, size_t rank) {
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
}

/// Every operand and result, of its own rank.
Letters each(const OperatorCall& call, const auto& letters_of) {
  Letters all;
  for (size_t i = 0; i < call.operands.size(); ++i) all.operands.push_back(letters_of(rank(call, i)));
  for (const auto& result : call.results) all.results.push_back(letters_of(rank_of(result)));
  return all;
}

/// The letters of an operand that is broadcast to `sizes`, whose letters are `of`.
std::string broadcast(const std::optional<Sizes>& operand, const Sizes& sizes, const std::string& of) {
  const size_t rank = rank_of(operand), skipped = sizes.size() - rank;
  std::string text = of.substr(skipped);
  for (size_t d = 0; d < rank; ++d)
    if ((*operand)[d] != sizes[skipped + d]) text[d] = '.';
  return text;
}

/// Each element of the result depends on the elements of the operands at the same place.
Letters pointwise(const OperatorCall& call) {
  Letters all;
  const Sizes& sizes = call.results.at(0).value();
  const std::string of = letters(sizes.size());
  for (const auto& operand : call.operands) all.operands.push_back(broadcast(operand, sizes, of));
  all.results.assign(call.results.size(), of);
  return all;
}

/// Operands and results of one rank, of which the dimension `dim` is mixed.
Letters mixed_along(const OperatorCall& call, const char* name) {
  const int64_t dim = argument(call, name).toInt();
  return each(call, [dim](size_t rank) {
    std::string text = letters(rank);
    if (rank > 0) text[wrapped(dim, rank)] = 'X';
    return text;
  });
}
Letters along_dim(const OperatorCall& call) { return mixed_along(call, "dim"); }

/// The dimensions of a reduction; all if none is given.
std::vector<size_t> reduced(const OperatorCall& call) {
  const size_t all = rank(call, 0);
  std::vector<size_t> dims;
  const auto place = call.schema.argumentIndexWithName("dim");
  if (place) {
    const c10::IValue& given = call.arguments.at(*place);
    if (given.isInt()) dims.push_back(wrapped(given.toInt(), all));
    if (given.isIntList())
      for (const int64_t dim : given.toIntVector()) dims.push_back(wrapped(dim, all));
  }
  if (dims.empty()) {
    dims.resize(all);
    std::iota(dims.begin(), dims.end(), 0);
  }
  std::ranges::sort(dims);
  return dims;
}

/// A reduction of the only operand. `sums`: it adds; else nothing is claimed along the reduced dimensions.
Letters reduction(const OperatorCall& call, bool sums) {
  std::string of = letters(rank(call, 0)), kept, gone;
  const std::vector<size_t> dims = reduced(call);
  const bool keeps = rank_of(call.results.at(0)) == of.size();
  for (size_t d = 0; d < of.size(); ++d) {
    if (!std::ranges::binary_search(dims, d)) {
      kept += of[d];
      continue;
    }
    gone += of[d];
    if (keeps) kept += '.';
    if (!sums) of[d] = 'X';
  }
  Letters all{.operands = {of}, .results = {}};
  all.results.assign(call.results.size(), kept);
  if (call.schema.name() == "aten::mean") all.averaged = gone;
  return all;
}
Letters sum(const OperatorCall& call) { return reduction(call, /*sums=*/true); }
Letters mixed(const OperatorCall& call) { return reduction(call, /*sums=*/false); }

Letters mm(const OperatorCall&) { return {{"nk", "km"}, {"nm"}}; }
Letters mv(const OperatorCall&) { return {{"nk", "k"}, {"n"}}; }
Letters dot(const OperatorCall&) { return {{"k", "k"}, {""}}; }
Letters bmm(const OperatorCall&) { return {{"bnk", "bkm"}, {"bnm"}}; }
/// The summand is not divided along k, so the parts would contain it twice.
Letters addmm(const OperatorCall& call) {
  return {{broadcast(call.operands.at(0), call.results.at(0).value(), "nm"), "nX", "Xm"}, {"nm"}};
}
Letters baddbmm(const OperatorCall& call) {
  return {{broadcast(call.operands.at(0), call.results.at(0).value(), "bnm"), "bnX", "bXm"}, {"bnm"}};
}

/// An index along the first dimensions: images by channels, rows of attention. Operands and results that have fewer
/// dimensions than 3, weights for example, are not divided.
Letters first_only(const OperatorCall& call) {
  return each(call, [](size_t rank) { return leading(rank, 1); });
}
/// The last operand is a mask, which may be the same for all rows.
Letters attention(const OperatorCall& call) {
  Letters all = first_only(call);
  const auto& mask = call.operands.back();
  if (rank_of(mask) != 4 || (*mask)[0] != call.operands.at(0).value()[0]) all.operands.back() = none(rank_of(mask));
  return all;
}
Letters first_two(const OperatorCall& call) {
  return each(call, [](size_t rank) { return leading(rank, rank > 3 ? 2 : rank > 2 ? 1 : 0); });
}
Letters all_but_last(const OperatorCall& call, size_t last) {
  return each(call, [last](size_t rank) { return leading(rank, rank > last ? rank - last : 0); });
}
Letters all_but_three(const OperatorCall& call) { return all_but_last(call, 3); }
Letters all_but_two(const OperatorCall& call) { return all_but_last(call, 2); }

Letters convolution(const OperatorCall& call) {
  return {{leading(rank(call, 0), 1), none(rank(call, 1)), none(rank(call, 2))}, {leading(rank(call, 0), 1)}};
}
Letters convolution_backward(const OperatorCall& call) {
  return {{leading(rank(call, 0), 1), leading(rank(call, 1), 1), none(rank(call, 2))},
          {leading(rank(call, 1), 1), none(rank(call, 2)), "X"}};
}

/// x, weight, bias -> out, mean, rstd over the last dimensions.
Letters layer_norm(const OperatorCall& call) {
  const size_t all = rank(call, 0), last = argument(call, "normalized_shape").toIntVector().size();
  const std::string x = leading(all, all - last), statistics = letters(all - last) + std::string(last, '.');
  return {{x, none(rank(call, 1)), none(rank(call, 2))}, {x, statistics, statistics}};
}
/// gradient, x, mean, rstd, weight, bias -> gradients of x, weight and bias.
Letters layer_norm_backward(const OperatorCall& call) {
  const size_t all = rank(call, 0), last = argument(call, "normalized_shape").toIntVector().size();
  const std::string x = leading(all, all - last), statistics = letters(all - last) + std::string(last, '.');
  return {{x, x, statistics, statistics, none(rank(call, 4)), none(rank(call, 5))}, {x, none(last), none(last)}};
}
/// In evaluation the statistics are operands; in training they mix the rows.
Letters batch_norm(const OperatorCall& call) {
  const std::string x = leading(rank(call, 0), argument(call, "training").toBool() ? 0 : 1);
  return {{x, "X", "X", "X", "X"}, {x, "X", "X"}};
}
Letters batch_norm_backward(const OperatorCall& call) {
  const std::string x = leading(rank(call, 0), argument(call, "train").toBool() ? 0 : 1);
  return {{x, x, "X", "X", "X", "X", "X"}, {x, "X", "X"}};
}
/// x, weight, bias -> out, mean, rstd by row and group.
Letters group_norm(const OperatorCall& call) {
  return {{leading(rank(call, 0), 1), none(rank(call, 1)), none(rank(call, 2))},
          {leading(rank(call, 0), 1), "aX", "aX"}};
}
Letters group_norm_backward(const OperatorCall& call) {
  const std::string x = leading(rank(call, 0), 1);
  return {{x, x, "aX", "aX", none(rank(call, 4))}, {x, "X", "X"}};
}

Letters embedding(const OperatorCall& call) {
  const std::string places = letters(rank(call, 1));
  return {{"XX", places}, {places + "X"}};
}
Letters embedding_backward(const OperatorCall& call) {
  // A place's gradient is then divided by how often it occurs in all rows.
  if (argument(call, "scale_grad_by_freq").toBool()) return each(call, [](size_t rank) { return none(rank); });
  const std::string places = letters(rank(call, 1));
  return {{places + "X", places}, {"XX"}};
}
/// One tensor of indices, in the first dimension; other forms: nothing is claimed.
Letters index(const OperatorCall& call) {
  if (call.operands.size() != 2) return each(call, [](size_t rank) { return none(rank); });
  const std::string places = letters(rank(call, 1)), rest = letters(rank(call, 0) - 1, places.size());
  return {{"X" + rest, places}, {places + rest}};
}
Letters index_select(const OperatorCall& call) {
  Letters all = mixed_along(call, "dim");
  all.operands[1] = none(rank(call, 1));
  return all;
}
/// Operands that differ in size along a dimension cannot be divided at the same places.
Letters gather(const OperatorCall& call) {
  Letters all = mixed_along(call, "dim");
  const Sizes &x = call.operands.at(0).value(), &places = call.operands.at(1).value();
  for (size_t d = 0; d < x.size(); ++d)
    if (x[d] != places[d]) all.operands[0][d] = all.operands[1][d] = all.results[0][d] = 'X';
  return all;
}

/// Nothing is claimed along a dimension whose ends are cut or filled.
Letters padding(const OperatorCall& call) {
  const std::vector<int64_t> pad = argument(call, "pad").toIntVector();
  std::string of = letters(rank(call, 0));
  for (size_t i = 0; i < pad.size(); ++i)
    if (pad[i] != 0) of[of.size() - 1 - i / 2] = 'X';
  return {{of}, {of}};
}
/// Without dimensions the operator takes all elements as one row: nothing is claimed.
Letters along_dims(const OperatorCall& call) {
  const std::vector<int64_t> dims = argument(call, "dims").toIntVector();
  std::string of = dims.empty() ? none(rank(call, 0)) : letters(rank(call, 0));
  for (const int64_t dim : dims) of[wrapped(dim, of.size())] = 'X';
  return {{of}, {of}};
}

Letters stack(const OperatorCall& call) {
  const size_t all = rank_of(call.results.at(0));
  const size_t dim = wrapped(argument(call, "dim").toInt(), all);
  const std::string of = letters(all - 1);
  Letters lemma;
  lemma.operands.assign(call.operands.size(), of);
  lemma.results = {of.substr(0, dim) + "X" + of.substr(dim)};
  return lemma;
}
Letters select_backward(const OperatorCall& call) {
  const Letters stacked = stack(call);
  return {stacked.operands, stacked.results};
}

bool averages(const OperatorCall& call) { return argument(call, "reduction").toInt() == at::Reduction::Mean; }
bool reduces(const OperatorCall& call) { return argument(call, "reduction").toInt() != at::Reduction::None; }

/// A loss of two tensors of one shape, reduced as its argument says.
Letters paired_loss(const OperatorCall& call) {
  const std::string of = letters(rank(call, 0));
  Letters all{.operands = {}, .results = {reduces(call) ? "" : of}, .averaged = averages(call) ? of : ""};
  for (size_t i = 0; i < call.operands.size(); ++i) all.operands.push_back(call.operands[i] ? of : "");
  if (rank(call, 0) != rank(call, 1)) return each(call, [](size_t rank) { return none(rank); });
  return all;
}
Letters paired_loss_backward(const OperatorCall& call) {
  const std::string of = letters(rank_of(call.results.at(0)));
  Letters all{.operands = {}, .results = {of}, .averaged = averages(call) ? of : ""};
  for (size_t i = 0; i < call.operands.size(); ++i)
    all.operands.push_back(i == 0 ? (rank(call, 0) == of.size() ? of : "") : call.operands[i] ? of : "");
  return all;
}

/// x [rows, classes], target [rows], weight [classes] -> loss, sum of the weights that count.
Letters nll_loss(const OperatorCall& call) {
  const bool many = rank(call, 0) == 2;
  Letters all{.operands = {many ? "nX" : "X", many ? "n" : "", none(rank(call, 2))},
              .results = {reduces(call) ? "" : "n", ""}};
  if (averages(call)) all.divided_by_result = 1;
  return all;
}
Letters nll_loss_backward(const OperatorCall& call) {
  const bool many = rank(call, 1) == 2;
  Letters all{.operands = {rank(call, 0) == 1 ? "n" : "", many ? "nX" : "X", many ? "n" : "", none(rank(call, 3)), ""},
              .results = {many ? "nX" : "X"}};
  if (averages(call))
    all.divided_by_operand = 4;
  else
    all.unread = {4};
  return all;
}

constexpr std::string_view kPointwise[] = {
    // arithmetic
    "aten::abs", "aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor",
    "aten::div.Tensor_mode", "aten::add.Scalar", "aten::sub.Scalar", "aten::mul.Scalar", "aten::div.Scalar",
    "aten::neg", "aten::reciprocal", "aten::addcmul", "aten::addcdiv", "aten::lerp.Scalar", "aten::lerp.Tensor",
    "aten::where.self", "aten::clamp", "aten::clamp_min", "aten::clamp_max", "aten::maximum", "aten::minimum",
    "aten::masked_fill.Scalar", "aten::remainder.Scalar", "aten::remainder.Tensor", "aten::fmod.Scalar",
    // rounding, signs
    "aten::floor", "aten::ceil", "aten::round", "aten::trunc", "aten::sgn", "aten::sign",
    // powers and functions
    "aten::pow.Tensor_Scalar", "aten::pow.Tensor_Tensor", "aten::sqrt", "aten::rsqrt", "aten::exp", "aten::expm1",
    "aten::log", "aten::log1p", "aten::sin", "aten::cos", "aten::erf", "aten::tanh", "aten::tanh_backward",
    "aten::sigmoid", "aten::sigmoid_backward",
    // activations
    "aten::relu", "aten::threshold_backward", "aten::gelu", "aten::gelu_backward", "aten::silu", "aten::silu_backward",
    "aten::elu", "aten::elu_backward", "aten::leaky_relu", "aten::leaky_relu_backward", "aten::softplus",
    "aten::softplus_backward", "aten::hardtanh", "aten::hardtanh_backward",
    // comparisons, logic
    "aten::eq.Scalar", "aten::eq.Tensor", "aten::ne.Scalar", "aten::ne.Tensor", "aten::lt.Scalar", "aten::lt.Tensor",
    "aten::le.Scalar", "aten::le.Tensor", "aten::gt.Scalar", "aten::gt.Tensor", "aten::ge.Scalar", "aten::ge.Tensor",
    "aten::logical_not", "aten::logical_and", "aten::logical_or", "aten::bitwise_not", "aten::bitwise_and.Tensor",
    "aten::bitwise_or.Tensor", "aten::isnan", "aten::isinf"};

std::map<std::string_view, RowLemma> make_lemmas() {
  std::map<std::string_view, RowLemma> all = {
      {"aten::mm", mm},
      {"aten::mv", mv},
      {"aten::dot", dot},
      {"aten::bmm", bmm},
      {"aten::addmm", addmm},
      {"aten::baddbmm", baddbmm},
      {"aten::sum", sum},
      {"aten::sum.dim_IntList", sum},
      {"aten::mean", sum},
      {"aten::mean.dim", sum},
      {"aten::amax", mixed},
      {"aten::amin", mixed},
      {"aten::max.dim", mixed},
      {"aten::min.dim", mixed},
      {"aten::argmax", mixed},
      {"aten::argmin", mixed},
      {"aten::prod.dim_int", mixed},
      {"aten::var.correction", mixed},
      {"aten::std.correction", mixed},
      {"aten::var_mean.correction", mixed},
      {"aten::logsumexp", mixed},
      {"aten::linalg_vector_norm", mixed},
      {"aten::any.dim", mixed},
      {"aten::all.dim", mixed},
      {"aten::cumsum", along_dim},
      {"aten::topk", along_dim},
      {"aten::sort", along_dim},
      {"aten::cat", along_dim},
      {"aten::stack", stack},
      {"aten::_softmax", along_dim},
      {"aten::_softmax_backward_data", along_dim},
      {"aten::_log_softmax", along_dim},
      {"aten::_log_softmax_backward_data", along_dim},
      {"aten::slice_backward", along_dim},
      {"aten::select_backward", select_backward},
      {"aten::flip", along_dims},
      {"aten::roll", along_dims},
      {"aten::constant_pad_nd", padding},
      {"aten::tril", all_but_two},
      {"aten::triu", all_but_two},
      {"aten::gather", gather},
      {"aten::index.Tensor", index},
      {"aten::index_select", index_select},
      {"aten::embedding", embedding},
      {"aten::embedding_dense_backward", embedding_backward},
      {"aten::convolution", convolution},
      {"aten::convolution_backward", convolution_backward},
      {"aten::native_layer_norm", layer_norm},
      {"aten::native_layer_norm_backward", layer_norm_backward},
      {"aten::native_batch_norm", batch_norm},
      {"aten::native_batch_norm_backward", batch_norm_backward},
      {"aten::native_group_norm", group_norm},
      {"aten::native_group_norm_backward", group_norm_backward},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention},
      {"aten::avg_pool2d", first_two},
      {"aten::avg_pool2d_backward", first_two},
      {"aten::max_pool2d_with_indices", first_two},
      {"aten::max_pool2d_with_indices_backward", first_two},
      {"aten::_adaptive_avg_pool2d", first_two},
      {"aten::_adaptive_avg_pool2d_backward", first_two},
      {"aten::upsample_nearest2d", first_two},
      {"aten::upsample_nearest2d_backward", first_two},
      {"aten::pixel_shuffle", all_but_three},
      {"aten::pixel_unshuffle", all_but_three},
      {"aten::mse_loss", paired_loss},
      {"aten::mse_loss_backward", paired_loss_backward},
      {"aten::smooth_l1_loss", paired_loss},
      {"aten::smooth_l1_loss_backward", paired_loss_backward},
      {"aten::huber_loss", paired_loss},
      {"aten::huber_loss_backward", paired_loss_backward},
      {"aten::nll_loss_forward", nll_loss},
      {"aten::nll_loss_backward", nll_loss_backward},
  };
  for (const std::string_view name : kPointwise) all.emplace(name, pointwise);
  return all;
}

}  // namespace

const std::map<std::string_view, RowLemma>& row_lemmas() {
  static const std::map<std::string_view, RowLemma> all = make_lemmas();
  return all;
}

}  // namespace plumbline::proof
