#include "reference/case.h"

#include <array>
#include <utility>

#include "runtime/error.h"

namespace plumbline {
namespace {

template <class Enum, size_t count>
using Names = std::array<std::pair<Enum, std::string_view>, count>;

constexpr Names<Truth, 3> truths{
    {{Truth::Exact, "exact"}, {Truth::SameOrder, "same-order"}, {Truth::Bounded, "bounded"}}};
constexpr Names<LossKind, 4> loss_kinds{{{LossKind::Sum, "sum"},
                                         {LossKind::Mse, "mse"},
                                         {LossKind::CrossEntropy, "cross-entropy"},
                                         {LossKind::Output, "output"}}};
constexpr Names<Reduction, 2> reductions{{{Reduction::Sum, "sum"}, {Reduction::Mean, "mean"}}};
constexpr Names<StepKind, 4> step_kinds{{{StepKind::Train, "train"},
                                         {StepKind::Eval, "eval"},
                                         {StepKind::ZeroGrad, "zero_grad"},
                                         {StepKind::Optimizer, "optimizer"}}};
constexpr Names<Dtype, 3> dtypes{{{Dtype::F32, "f32"}, {Dtype::BF16, "bf16"}, {Dtype::F64, "f64"}}};

template <class Enum, size_t count>
std::string_view name_of(const Names<Enum, count>& names, Enum value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  PLUMBLINE_CHECK(false, "an enumerator without a name: " + std::to_string(static_cast<int>(value)));
  return {};
}

template <class Enum, size_t count>
Enum value_of(const Names<Enum, count>& names, const char* what, std::string_view text) {
  std::string accepted;
  for (const auto& [known, name] : names) {
    if (name == text) return known;
    accepted += (accepted.empty() ? "" : ", ") + std::string(name);
  }
  throw InputError("case: '" + std::string(text) + "' is no " + what + "; accepted: " + accepted);
}

}  // namespace

std::string_view to_string(Truth value) { return name_of(truths, value); }
std::string_view to_string(LossKind value) { return name_of(loss_kinds, value); }
std::string_view to_string(Reduction value) { return name_of(reductions, value); }
std::string_view to_string(StepKind value) { return name_of(step_kinds, value); }
std::string_view to_string(Dtype value) { return name_of(dtypes, value); }

Truth parse_truth(std::string_view text) { return value_of(truths, "kind of truth", text); }
LossKind parse_loss_kind(std::string_view text) { return value_of(loss_kinds, "loss", text); }
Reduction parse_reduction(std::string_view text) { return value_of(reductions, "reduction", text); }
StepKind parse_step_kind(std::string_view text) { return value_of(step_kinds, "step", text); }
Dtype parse_dtype(std::string_view text) { return value_of(dtypes, "dtype", text); }

}  // namespace plumbline
