#include "runtime/capture/reads_content.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace plumbline::capture {
namespace {

constexpr std::string_view kNamespace = "aten::";

/// Operators in place that overwrite dense memory wholly or in places, or do not touch it.
constexpr std::string_view kOverwriting[] = {
    // internal
    "_fill_mem_eff_dropout_mask_", "_foreach_copy_", "_foreach_zero_", "_index_put_impl_", "_philox_normal_",
    "_philox_randint_", "_philox_uniform_", "_resize_output_", "_sobol_engine_initialize_state_",
    // public
    "bernoulli_", "cauchy_", "copy_", "exponential_", "fill_", "fill_diagonal_", "geometric_", "index_copy_",
    "index_fill_", "index_put_", "index_reduce_", "log_normal_", "masked_fill_", "masked_scatter_", "normal_", "put_",
    "random_", "rename_", "scatter_", "scatter_reduce_", "uniform_", "zero_"};

/// The argument with this name; null if the operator has none.
const c10::IValue* named(const c10::FunctionSchema& schema, const torch::jit::Stack& stack, const char* name) {
  const auto index = schema.argumentIndexWithName(name);
  return index ? &stack[stack.size() - schema.arguments().size() + static_cast<size_t>(*index)] : nullptr;
}

/// `memory = beta * memory + ...`: with a beta of zero the memory is not read.
bool has_zero_beta(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  const c10::IValue* const beta = named(schema, stack, "beta");
  return beta != nullptr && beta->isScalar() && beta->toScalar().equal(0);
}

/// Whether an operator that overwrites in places reduces onto the content there instead.
bool accumulates(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  if (const c10::IValue* const accumulate = named(schema, stack, "accumulate")) return accumulate->toBool();
  if (const c10::IValue* const include = named(schema, stack, "include_self")) return include->toBool();
  return named(schema, stack, "reduce") != nullptr;
}

}  // namespace

bool reads_content(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t argument) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string_view name = schema.name();
  const c10::AliasInfo* alias = schema.arguments()[argument].alias_info();
  if (alias == nullptr) return !name.ends_with("_like") && !name.starts_with("aten::new_");
  if (argument > 0 || !alias->isWrite() || op.hasTag(at::Tag::inplace_view)) return false;
  if (!name.starts_with(kNamespace) || !name.ends_with('_')) return false;
  const bool overwrites = std::ranges::find(kOverwriting, name.substr(kNamespace.size())) != std::end(kOverwriting);
  return overwrites ? accumulates(schema, stack) : !has_zero_beta(schema, stack);
}

}  // namespace plumbline::capture
