#include "conformance/proof/rows/application.h"

#include <algorithm>
#include <utility>

#include "conformance/proof/sums/linear_operators.h"

namespace plumbline::proof {
namespace {

using RowKind = RowType::Kind;

const Linear* linearity(const TracedCall& call) {
  const auto is_floating = [](const TracedTensor& tensor) { return c10::isFloatingType(tensor.dtype); };
  // From floating-point numbers to whole ones it rounds.
  if (!call.results.empty() && !is_floating(call.results[0]))
    for (const std::vector<TracedTensor>& tensors : call.tensors)
      if (std::ranges::any_of(tensors, is_floating)) return nullptr;
  const auto known = linear_operators().find(call.op);
  return known == linear_operators().end() ? nullptr : &known->second;
}

/// One lemma and one set of operands, of which none is not separable.
class Application {
 public:
  Application(const AppliedCall& call, std::vector<Operand>& operands, const Letters& letters)
      : call_(call), operands_(operands), letters_(letters), linear_(linearity(*call.calls[0])) {}

  std::vector<RowType> results() {
    take_factors();
    if (!find_rows()) return all_results(refused_);
    const bool has_sum = std::ranges::any_of(operands_, [](const Operand& o) { return o.type.is(RowKind::Sum); });
    if (has_sum) return all_results(sum());
    const std::optional<Power> power = common_power();
    if (!power) return all_results(refused_);
    if (letter_ == 0) return all_results(without_rows(*power));
    return with_rows(*power);
  }

 private:
  bool refuse(const std::string& why) {
    refused_ = call_.refuse(why);
    return false;
  }

  const std::string& op() const { return call_.calls[0]->op; }

  std::vector<RowType> all_results(const RowType& type) const {
    return std::vector<RowType>(std::max<size_t>(1, call_.calls[0]->results.size()), type);
  }

  std::string number(const Operand& operand) const { return std::to_string(&operand - operands_.data()); }

  /// Numbers by which the call multiplies or divides; of a sum over the rows, every micro-batch divides by its own
  /// part.
  void take_factors() {
    if (op() == "aten::mul.Scalar") factor_ = std::exchange(operands_.back().type.power, {});
    const bool quotient = (op() == "aten::div.Tensor" || op() == "aten::div.Scalar") && operands_.size() == 2;
    const bool counted = letters_.divided_by_operand && *letters_.divided_by_operand < letters_.operands.size();
    if (!quotient && !counted) return;
    Operand& divisor = operands_.back();
    if (divisor.type.is(RowKind::Replicated)) factor_ = Power{} - std::exchange(divisor.type.power, {});
    if (!divisor.type.is(RowKind::Sum) || !is_one(divisor.type.power)) return;
    const std::optional<Power> share = call_.share_of(divisor.tensors);
    if (!share) return;
    factor_ = *share;
    divisor.type = {};
    divisor.letters.assign(divisor.letters.size(), '.');
  }

  /// The letter along which the operands with rows are divided.
  bool find_rows() {
    const Operand* first = nullptr;
    for (const Operand& operand : operands_) {
      if (!operand.type.is(RowKind::Rows)) continue;
      const char letter = operand.letters.at(operand.type.dim);
      if (letter == 'X' || letter == '.')
        return refuse("mixes rows: they lie along dimension " + std::to_string(operand.type.dim) + " of operand " +
                      number(operand));
      const bool any = operand.type.rows.at(0) == kAnyRow;
      if (first == nullptr) {
        letter_ = letter;
        rows_ = operand.type.rows;
        first = &operand;
      } else if (letter != letter_) {
        return refuse("rows of operand " + number(*first) + " meet other rows of operand " + number(operand));
      } else if (rows_[0] == kAnyRow) {
        rows_ = operand.type.rows;
      } else if (!any && rows_ != operand.type.rows) {
        return refuse("operands " + number(*first) + " and " + number(operand) + " arrange rows in different ways");
      }
    }
    if (first == nullptr) return true;
    for (const Operand& operand : operands_) {
      if (operand.type.is(RowKind::Sum))
        return refuse("rows of operand " + number(*first) + " meet a sum over all rows, operand " + number(operand));
      if (operand.type.is(RowKind::Replicated) && operand.letters.find(letter_) != std::string::npos)
        return refuse("operand " + number(operand) + " has no rows where operand " + number(*first) + " has them");
    }
    return true;
  }

  /// The power of a result that is made of rows or of values without rows.
  std::optional<Power> common_power() {
    Power power = factor_;
    if (linear_ != nullptr && linear_->jointly) {
      const Operand* first = nullptr;
      for (const Operand& operand : operands_) {
        if (operand.type.is(RowKind::Zero)) continue;
        if (first == nullptr) first = &operand;
        if (operand.type.power != first->type.power) {
          refuse("operands " + number(*first) + " and " + number(operand) + " have different weights in a micro-batch");
          return std::nullopt;
        }
      }
      return first == nullptr ? power : power + first->type.power;
    }
    for (size_t k = 0; k < operands_.size(); ++k) {
      const RowType& type = operands_[k].type;
      if (type.is(RowKind::Zero) || is_one(type.power)) continue;
      if (linear_ == nullptr || std::ranges::find(linear_->operands, k) == linear_->operands.end()) {
        refuse("is not linear in operand " + std::to_string(k) + ", which has another weight in a micro-batch");
        return std::nullopt;
      }
      power = power + type.power;
    }
    return power;
  }

  /// The type of all results if an operand is a sum over the rows.
  RowType sum() {
    RowType result{.kind = RowKind::Sum, .power = factor_};
    if (linear_ != nullptr && linear_->jointly) {
      const auto one = std::ranges::find_if(operands_, [](const Operand& o) { return o.type.is(RowKind::Sum); });
      for (const Operand& operand : operands_) {
        const RowType& type = operand.type;
        const bool fits = type.is(RowKind::Zero) || (type.is(RowKind::Sum) && type.power == one->type.power) ||
                          (type.is(RowKind::Replicated) && is_share(one->type.power - type.power));
        if (!fits)
          return call_.refuse("adds operand " + number(operand) +
                              ", which micro-batches weight otherwise than the sum "
                              "over rows in operand " +
                              number(*one));
      }
      result.power = result.power + one->type.power;
      return result;
    }
    int sums = 0;
    for (size_t k = 0; k < operands_.size(); ++k) {
      const RowType& type = operands_[k].type;
      sums += type.is(RowKind::Sum) ? 1 : 0;
      const bool plain = type.is(RowKind::Zero) || (type.is(RowKind::Replicated) && is_one(type.power));
      const bool linear = linear_ != nullptr && std::ranges::find(linear_->operands, k) != linear_->operands.end();
      if (!plain && !linear)
        return call_.refuse("is not linear in operand " + std::to_string(k) + ", a sum over the rows");
      if (sums > 1) return call_.refuse("multiplies two sums over the rows");
      result.power = result.power + type.power;
    }
    return result;
  }

  static bool is_share(const Power& power) { return power.size() == 1 && power.begin()->second == 1; }

  /// Operands without rows and zeros.
  RowType without_rows(const Power& power) {
    const bool has_zero = std::ranges::any_of(operands_, [](const Operand& o) { return o.type.is(RowKind::Zero); });
    RowType type{.power = power};
    const Executions tensors = call_.first_result;
    if (!has_zero || std::ranges::all_of(tensors, [&](const TracedTensor* tensor) {
          return tensor->layout.sizes == tensors[0]->layout.sizes;
        }))
      return type;
    // Zeros of as many slices as there are rows: by the lemma, equal slices of the result.
    const int dim = dim_of_rows(tensors);
    if (dim < 0 || letters_.results.at(0).at(dim) == 'X')
      return call_.refuse("a result has other sizes for a micro-batch than for the whole batch");
    return call_.resized(type, tensors);
  }

  std::vector<RowType> with_rows(Power power) {
    if (letters_.averaged.find(letter_) != std::string::npos) {
      if (!sizes_are_shares()) return all_results(refused_);
      power = power + Power{{kRows, 1}};
    }
    std::vector<RowType> results;
    Power count;
    if (letters_.divided_by_result) {
      Executions tensors;
      for (const TracedCall* call : call_.calls) tensors.push_back(&call->results.at(*letters_.divided_by_result));
      const std::optional<Power> share = call_.share_of(tensors);
      if (!share) return all_results(call_.refuse("divides by a sum over the rows that is 0"));
      count = *share;
    }
    for (size_t r = 0; r < letters_.results.size(); ++r) {
      const size_t dim = letters_.results[r].find(letter_);
      RowType type{.kind = dim == std::string::npos ? RowKind::Sum : RowKind::Rows, .power = power};
      if (r != letters_.divided_by_result) type.power = type.power + count;
      if (type.is(RowKind::Rows)) {
        type.dim = static_cast<int>(dim);
        type.rows = rows_;
      }
      results.push_back(std::move(type));
    }
    return results;
  }

  /// Whether each micro-batch has its share of rows in the dimension that is averaged.
  bool sizes_are_shares() {
    for (const Operand& operand : operands_) {
      if (!operand.type.is(RowKind::Rows)) continue;
      const int dim = operand.type.dim;
      for (size_t m = 0; m < call_.shares_of_rows.size(); ++m)
        if (Rational(operand.tensors[m + 1]->layout.sizes[dim], operand.tensors[0]->layout.sizes[dim]) !=
            call_.shares_of_rows[m])
          return refuse("averages over slices of which rows have different numbers");
    }
    return true;
  }

  const AppliedCall& call_;
  std::vector<Operand>& operands_;
  const Letters& letters_;
  const Linear* linear_;
  char letter_ = 0;
  std::vector<int32_t> rows_;
  Power factor_;  ///< by which the call multiplies besides, a quotient for example
  RowType refused_;
};

}  // namespace

std::vector<RowType> apply_lemma(const AppliedCall& call, std::vector<Operand> operands, const Letters& letters) {
  return Application(call, operands, letters).results();
}

}  // namespace plumbline::proof
