// Rules for LibTorch operators that have neither a meta kernel nor a composition that runs without Python. Sizes, types
// and strides are those of LibTorch's CPU kernels: strides decide whether a later reshape is a view, and so which
// values share memory.
#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <torch/version.h>

#include "runtime/capture/meta/shape_rules.h"

namespace plumbline::capture::detail {
namespace {

using Arguments = std::span<const c10::IValue>;
using Results = std::vector<c10::IValue>;
using Sizes = std::vector<int64_t>;

at::Tensor tensor(const c10::IValue& value) { return value.isTensor() ? value.toTensor() : at::Tensor(); }

/// Element i of a list in which a single number applies to all dimensions.
int64_t entry(const Sizes& list, size_t i) { return list.size() == 1 ? list[0] : list.at(i); }

// --- elementwise -------------------------------------------------------------------------------------------------

Results like_first(Arguments a) { return {at::empty_like(tensor(a[0]))}; }

/// The output and the buffer that backward needs, both contiguous.
Results log_sigmoid(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  return {at::empty(x.sizes(), x.options()), at::empty(x.sizes(), x.options())};
}

Results like_each_of_two(Arguments a) { return {at::empty_like(tensor(a[0])), at::empty_like(tensor(a[1]))}; }

Results dense_like_first(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  return {at::empty(x.sizes(), x.options(), x.suggest_memory_format())};
}

/// abs, angle: the result is real even for complex numbers.
Results magnitude(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  return {at::empty_like(x, x.options().dtype(c10::toRealValueType(x.scalar_type())))};
}

Results truth_of_one(Arguments a) { return {at::empty_like(tensor(a[0]), tensor(a[0]).options().dtype(at::kBool))}; }
Results truth_of_two(Arguments a) { return {at::eq(tensor(a[0]), tensor(a[1]))}; }
Results promoted(Arguments a) { return {at::add(tensor(a[0]), tensor(a[1]))}; }

/// complex, polar: from two real parts.
Results complex_of_two(Arguments a) {
  const at::Tensor sum = at::add(tensor(a[0]), tensor(a[1]));
  return {at::empty_like(sum, sum.options().dtype(c10::toComplexType(sum.scalar_type())))};
}

/// (condition, self, other)
Results where(Arguments a) { return {at::mul(tensor(a[0]), at::add(tensor(a[1]), tensor(a[2])))}; }

/// The same with an out tensor.
Results where_out(Arguments a) {
  const at::Tensor result = where(a)[0].toTensor(), out = tensor(a[3]);
  if (out.sizes() != result.sizes()) out.resize_(result.sizes());
  return {out};
}

/// (input, p, train): output and mask.
Results dropout(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  return {at::empty_like(x), at::empty_like(x, x.options().dtype(at::kBool))};
}

// --- reductions --------------------------------------------------------------------------------------------------

Results scalar_like_first(Arguments a) { return {at::empty({}, tensor(a[0]).options())}; }

/// (self, dim, ..., keepdim): a value and its index.
Results value_and_index(const at::Tensor& x, int64_t dim, bool keepdim) {
  auto [values, indices] = at::max(x, dim, keepdim);
  return {values, indices};
}

/// prod, nansum: over all elements, in 64 bits for integers.
Results total(Arguments a) { return {at::sum(tensor(a[0]), a[1].toOptional<at::ScalarType>())}; }

/// (self, dim, keepdim, dtype)
Results nansum(Arguments a) {
  return {at::sum(tensor(a[0]), a[1].isNone() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(a[1].toIntVector()),
                  a[2].toBool(), a[3].toOptional<at::ScalarType>())};
}

/// (self, dim, correction, keepdim)
at::Tensor spread(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  const Sizes dims = a[1].isNone() ? Sizes{} : a[1].toIntVector();
  return at::sum(at::empty_like(x, x.options().dtype(c10::toRealValueType(x.scalar_type()))), dims, a[3].toBool());
}

Results count(Arguments a) { return {at::sum(tensor(a[0]), a[1].toIntVector(), false, at::kLong)}; }

// --- losses ------------------------------------------------------------------------------------------------------

/// binary_cross_entropy (self, target, weight, reduction)
Results elementwise_loss(Arguments a) {
  return a[3].toInt() == at::Reduction::None ? like_first(a) : scalar_like_first(a);
}

/// huber_loss (self, target, reduction, delta)
Results huber(Arguments a) { return {at::smooth_l1_loss(tensor(a[0]), tensor(a[1]), a[2].toInt(), a[3].toDouble())}; }

/// (self [n, classes, h, w], target [n, h, w], weight, reduction, ignore_index): loss and total weight.
Results nll_of_images(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  const at::Tensor loss =
      a[3].toInt() == at::Reduction::None ? at::empty(tensor(a[1]).sizes(), x.options()) : at::empty({}, x.options());
  return {loss, at::empty({}, x.options())};
}

// --- indexing ----------------------------------------------------------------------------------------------------

/// (self, dim, index)
Results index_select(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  Sizes sizes = x.sizes().vec();
  if (!sizes.empty()) sizes[at::maybe_wrap_dim(a[1].toInt(), x.dim())] = tensor(a[2]).numel();
  return {at::empty(sizes, x.options())};
}

Results take(Arguments a) { return {at::empty(tensor(a[1]).sizes(), tensor(a[0]).options())}; }

at::Tensor positions(const at::Tensor& looked_up, bool in_32_bits) {
  return at::empty(looked_up.sizes(), looked_up.options().dtype(in_32_bits ? at::kInt : at::kLong));
}

/// (self, count, replacement, generator)
Results multinomial(Arguments a) {
  Sizes sizes = tensor(a[0]).sizes().vec();
  sizes.back() = a[1].toInt();
  return {at::empty(sizes, tensor(a[0]).options().dtype(at::kLong))};
}

/// randperm (n, ..., dtype, layout, device, pin_memory)
Results permutation(Arguments a, size_t dtype) {
  return {at::empty({a[0].toInt()},
                    at::TensorOptions(at::kMeta).dtype(a[dtype].toOptional<at::ScalarType>().value_or(at::kLong)))};
}

// --- layers ------------------------------------------------------------------------------------------------------

/// How often a kernel fits into `padded` elements at steps of `stride`; its first and last element are `reach` apart.
int64_t placements(int64_t padded, int64_t reach, int64_t stride) {
  TORCH_CHECK(padded > reach, "the kernel is larger than its input");
  return (padded - reach - 1) / stride + 1;
}

void check_stride(const Sizes& stride) {
  for (const int64_t step : stride) TORCH_CHECK(step > 0, "a stride of ", step, "; strides are at least 1");
}

/// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Results convolution(Arguments a) {
  const at::Tensor x = tensor(a[0]), weight = tensor(a[1]);
  const Sizes stride = a[3].toIntVector(), padding = a[4].toIntVector(), dilation = a[5].toIntVector(),
              output_padding = a[7].toIntVector();
  const bool transposed = a[6].toBool();
  check_stride(stride);
  Sizes sizes = {x.size(0), transposed ? weight.size(1) * a[8].toInt() : weight.size(0)};
  for (int64_t d = 2; d < x.dim(); ++d) {
    const auto i = static_cast<size_t>(d - 2);
    const int64_t reach = entry(dilation, i) * (weight.size(d) - 1), pad = 2 * entry(padding, i), in = x.size(d);
    sizes.push_back(transposed ? (in - 1) * entry(stride, i) - pad + reach + entry(output_padding, i) + 1
                               : placements(in + pad, reach, entry(stride, i)));
  }
  TORCH_CHECK(x.dim() == weight.dim(), "a weight of ", weight.dim(), " dimensions for an input of ", x.dim());
  const int64_t channels = transposed ? weight.size(0) : weight.size(1) * a[8].toInt();
  TORCH_CHECK(x.size(1) == channels, "an input of ", x.size(1), " channels for a weight that takes ", channels);
  for (const int64_t size : sizes) TORCH_CHECK(size >= 0, "the kernel is larger than its input");
  at::MemoryFormat format = x.suggest_memory_format();
  if (format == at::MemoryFormat::Contiguous) format = weight.suggest_memory_format();
  return {at::empty(sizes, x.options(), format)};
}

/// Statistics have the type of the parameters if that is wider than the input's.
at::TensorOptions statistics(const at::Tensor& x, const at::Tensor& weight) {
  return weight.defined() ? weight.options() : x.options();
}

Results normalised_batch(const at::Tensor& x, const at::Tensor& weight, bool training) {
  const Sizes saved = {training ? x.size(1) : 0};
  return {at::empty(x.sizes(), x.options(), x.suggest_memory_format()), at::empty(saved, statistics(x, weight)),
          at::empty(saved, statistics(x, weight))};
}

/// (input, normalized_shape, weight, bias, eps)
Results layer_norm(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  const Sizes normalised = a[1].toIntVector();
  TORCH_CHECK(x.dim() >= static_cast<int64_t>(normalised.size()) &&
                  x.sizes().slice(x.dim() - normalised.size()).equals(normalised),
              "an input of ", x.sizes(), " is not normalised over ", at::IntArrayRef(normalised));
  Sizes kept = x.sizes().vec();
  std::fill(kept.end() - static_cast<int64_t>(normalised.size()), kept.end(), 1);
  const at::TensorOptions options = statistics(x, tensor(a[2]));
  return {at::empty(x.sizes(), x.options()), at::empty(kept, options), at::empty(kept, options)};
}

/// (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
Results layer_norm_backward(Arguments a) {
  const std::vector<bool> wanted = a[7].toBoolList().vec();
  const auto dense = [&](size_t argument, size_t result) {
    return wanted[result] ? at::empty(tensor(a[argument]).sizes(), tensor(a[argument]).options()) : at::Tensor();
  };
  return {dense(1, 0), dense(5, 1), dense(6, 2)};
}

/// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Results embedding_backward(Arguments a) {
  const at::Tensor gradient = tensor(a[0]);
  return {at::empty({a[2].toInt(), gradient.size(-1)}, gradient.options())};
}

/// (grad_out, query, key, value, ...): each gradient lies as [rows, length, heads, width].
Results flash_attention_backward(Arguments a) {
  const auto gradient = [](const at::Tensor& of) {
    return at::empty(of.transpose(1, 2).sizes(), of.options()).transpose(1, 2);
  };
  return {gradient(tensor(a[1])), gradient(tensor(a[2])), gradient(tensor(a[3]))};
}

/// (input, weight, bias, n, c, hw, groups, eps)
Results group_norm(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  const Sizes groups = {a[3].toInt(), a[6].toInt()};
  const at::TensorOptions options = statistics(x, tensor(a[1]));
  return {at::empty(x.sizes(), x.options(), x.suggest_memory_format()), at::empty(groups, options),
          at::empty(groups, options)};
}

/// (input, groups, weight, bias, eps, cudnn_enabled), a composition, which LibTorch 2.11 begins with contiguous() on
/// every device but the CPU.
Results whole_group_norm(Arguments a) {
  const at::Tensor x = tensor(a[0]), weight = tensor(a[2]), bias = tensor(a[3]);
  const int64_t n = x.size(0), channels = x.size(1);
  const at::Tensor ordered = x.contiguous(x.suggest_memory_format());
  return {std::get<0>(at::native_group_norm(ordered, weight, bias, n, channels,
                                            x.numel() / std::max<int64_t>(n * channels, 1), a[1].toInt(),
                                            a[4].toDouble()))};
}

/// (self, output_size)
Results adaptive_pool(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  const Sizes out = a[1].toIntVector();
  Sizes sizes = x.sizes().vec();
  std::copy(out.begin(), out.end(), sizes.end() - static_cast<int64_t>(out.size()));
  return {at::empty(sizes, x.options(), x.suggest_memory_format())};
}

/// (self, [left, right, top, bottom])
Results reflection_pad(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  const Sizes pad = a[1].toIntVector();
  Sizes sizes = x.sizes().vec();
  for (size_t i = 0; i < pad.size() / 2; ++i) sizes[sizes.size() - 1 - i] += pad[2 * i] + pad[2 * i + 1];
  return {at::empty(sizes, x.options(), x.suggest_memory_format())};
}

/// (input [n, c, ...], grid [n, out..., d])
Results grid_sampler(Arguments a) {
  const at::Tensor x = tensor(a[0]), grid = tensor(a[1]);
  Sizes sizes = {x.size(0), x.size(1)};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) sizes.push_back(grid.size(d));
  return {at::empty(sizes, x.options())};
}

/// (self, kernel, dilation, padding, stride)
Results im2col(Arguments a) {
  const at::Tensor x = tensor(a[0]);
  const Sizes kernel = a[1].toIntVector(), dilation = a[2].toIntVector(), padding = a[3].toIntVector(),
              stride = a[4].toIntVector();
  check_stride(stride);
  int64_t blocks = 1;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t in = x.size(x.dim() - 2 + static_cast<int64_t>(i));
    blocks *= placements(in + 2 * entry(padding, i), entry(dilation, i) * (entry(kernel, i) - 1), entry(stride, i));
  }
  Sizes sizes = {x.size(-3) * entry(kernel, 0) * entry(kernel, 1), blocks};
  if (x.dim() == 4) sizes.insert(sizes.begin(), x.size(0));
  return {at::empty(sizes, x.options())};
}

/// (self, batch1 [n, r, k], batch2 [n, k, c])
Results addbmm(Arguments a) {
  return {at::empty({tensor(a[1]).size(1), tensor(a[2]).size(2)}, tensor(a[0]).options())};
}

/// (x1 [..., p, m], x2 [..., r, m])
Results distances(Arguments a) {
  const at::Tensor x = tensor(a[0]), y = tensor(a[1]);
  Sizes sizes = at::infer_size(x.sizes().slice(0, x.dim() - 2), y.sizes().slice(0, y.dim() - 2));
  sizes.push_back(x.size(-2));
  sizes.push_back(y.size(-2));
  return {at::empty(sizes, x.options())};
}

// --- attention ---------------------------------------------------------------------------------------------------

/// (query [n, heads, l, e], key, value, dropout_p, is_causal, attn_mask, scale): the kernel writes [n, l, heads, e].
Results flash_attention(Arguments a) {
  const at::Tensor query = tensor(a[0]);
  const int64_t n = query.size(0), heads = query.size(1), length = query.size(2);
  const at::TensorOptions wide = query.options().dtype(at::toOpMathType(query.scalar_type()));
  return {at::empty({n, length, heads, tensor(a[2]).size(3)}, query.options()).transpose(1, 2),
          at::empty({n, length, heads}, wide).transpose(1, 2)};
}

/// Whether the CPU's scaled_dot_product_attention uses the fused kernel.
bool takes_flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
                 double dropout) {
  for (const at::Tensor& t : {query, key, value})
    if (t.dim() != 4 || t.numel() == 0 || t.stride(3) != 1) return false;
  return dropout == 0.0 && query.size(3) == key.size(3) && query.size(3) == value.size(3) &&
         query.size(0) == key.size(0) && key.size(0) == value.size(0) && query.size(1) == key.size(1) &&
         key.size(1) == value.size(1) &&
         (!mask.defined() || (!mask.requires_grad() && (mask.dim() == 2 || mask.dim() == 4)));
}

/// (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa), a composition: chooses between the fused
/// kernel and the plain one as on the CPU; the strides of the result depend on it.
Results attention(Arguments a) {
  const at::Tensor query = tensor(a[0]), key = tensor(a[1]), value = tensor(a[2]), mask = tensor(a[3]);
  // LibTorch 2.11 computes unbatched attention by the plain kernel.
  constexpr bool batches_unbatched = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR > 11;
  if (batches_unbatched && query.dim() == 3 && key.dim() == 3 && value.dim() == 3 && !mask.defined()) {
    const std::vector<c10::IValue> batched = {
        query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), a[3], a[4], a[5], a[6], a[7]};
    return {attention(batched)[0].toTensor().squeeze(0)};
  }
  const std::optional<at::Tensor> some_mask = mask.defined() ? std::optional(mask) : std::nullopt;
  const std::optional<double> scale = a[6].toOptional<double>();
  if (takes_flash(query, key, value, mask, a[4].toDouble()))
    return {std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, a[4].toDouble(),
                                                                        a[5].toBool(), some_mask, scale))};
  return {std::get<0>(at::_scaled_dot_product_attention_math(query, key, value, some_mask, a[4].toDouble(),
                                                             a[5].toBool(), std::nullopt, scale, a[7].toBool()))};
}

}  // namespace

std::vector<NamedShapeRule> builtin_shape_rules() {
  return {
      {"aten::_prelu_kernel", [](Arguments a) { return Results{at::mul(tensor(a[0]), tensor(a[1]))}; }},
      {"aten::abs", magnitude},
      {"aten::angle", magnitude},
      {"aten::channel_shuffle", dense_like_first},
      {"aten::complex", complex_of_two},
      {"aten::flip", like_first},
      {"aten::floor_divide", promoted},
      {"aten::hardswish", like_first},
      {"aten::hardtanh", like_first},
      {"aten::isnan", truth_of_one},
      {"aten::log_sigmoid_forward", log_sigmoid},
      {"aten::logical_and", truth_of_two},
      {"aten::logical_not", truth_of_one},
      {"aten::logical_or", truth_of_two},
      {"aten::logical_xor", truth_of_two},
      {"aten::logit", like_first},
      {"aten::nan_to_num", like_first},
      {"aten::native_dropout", dropout},
      {"aten::polar", complex_of_two},
      {"aten::relu", like_first},
      {"aten::roll", dense_like_first},
      {"aten::rsub.Tensor", [](Arguments a) { return Results{at::sub(tensor(a[1]), tensor(a[0]))}; }},
      {"aten::where.self", where},
      {"aten::where.self_out", where_out},

      {"aten::count_nonzero.dim_IntList", count},
      {"aten::dot", scalar_like_first},
      {"aten::embedding_dense_backward", embedding_backward},
      {"aten::kthvalue", [](Arguments a) { return value_and_index(tensor(a[0]), a[2].toInt(), a[3].toBool()); }},
      {"aten::max", scalar_like_first},
      {"aten::median", scalar_like_first},
      {"aten::median.dim", [](Arguments a) { return value_and_index(tensor(a[0]), a[1].toInt(), a[2].toBool()); }},
      {"aten::min", scalar_like_first},
      {"aten::nansum", nansum},
      {"aten::prod", total},
      {"aten::std.correction", [](Arguments a) { return Results{spread(a)}; }},
      {"aten::std_mean.correction", [](Arguments a) { return Results{spread(a), spread(a)}; }},
      {"aten::trace", scalar_like_first},
      {"aten::var.correction", [](Arguments a) { return Results{spread(a)}; }},
      {"aten::var_mean.correction", [](Arguments a) { return Results{spread(a), spread(a)}; }},

      {"aten::binary_cross_entropy", elementwise_loss},
      {"aten::huber_loss", huber},
      {"aten::nll_loss2d_forward", nll_of_images},

      {"aten::bucketize.Tensor", [](Arguments a) { return Results{positions(tensor(a[0]), a[2].toBool())}; }},
      {"aten::index_select", index_select},
      {"aten::multinomial", multinomial},
      {"aten::randperm", [](Arguments a) { return permutation(a, 1); }},
      {"aten::randperm.generator", [](Arguments a) { return permutation(a, 2); }},
      {"aten::searchsorted.Tensor", [](Arguments a) { return Results{positions(tensor(a[1]), a[2].toBool())}; }},
      {"aten::take", take},

      {"aten::_adaptive_avg_pool2d", adaptive_pool},
      {"aten::_adaptive_avg_pool3d", adaptive_pool},
      {"aten::_cdist_forward", distances},
      {"aten::_native_batch_norm_legit",
       [](Arguments a) { return normalised_batch(tensor(a[0]), tensor(a[1]), a[5].toBool()); }},
      {"aten::_native_batch_norm_legit.no_stats",
       [](Arguments a) { return normalised_batch(tensor(a[0]), tensor(a[1]), a[3].toBool()); }},
      {"aten::_weight_norm_interface", like_each_of_two},
      {"aten::addbmm", addbmm},
      {"aten::convolution", convolution},
      {"aten::grid_sampler_2d", grid_sampler},
      {"aten::grid_sampler_3d", grid_sampler},
      {"aten::im2col", im2col},
      {"aten::native_batch_norm",
       [](Arguments a) { return normalised_batch(tensor(a[0]), tensor(a[1]), a[5].toBool()); }},
      {"aten::group_norm", whole_group_norm},
      {"aten::native_group_norm", group_norm},
      {"aten::native_layer_norm", layer_norm},
      {"aten::native_layer_norm_backward", layer_norm_backward},
      {"aten::reflection_pad2d", reflection_pad},

      {"aten::_scaled_dot_product_flash_attention_for_cpu", flash_attention},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", flash_attention_backward},
      {"aten::scaled_dot_product_attention", attention},
  };
}

}  // namespace plumbline::capture::detail
