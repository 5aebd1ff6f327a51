#include "conformance/proof/rows/labels.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/error.h"

namespace plumbline::proof {
namespace {

// What an element is: a row's number, kAnyRow, or one of these.
constexpr int32_t kReplicated = -1, kSum = -2, kZero = -4, kUnset = -5, kFirstCause = -10;

bool is_row(int32_t what) { return what >= 0 || what == kAnyRow; }

const Sizes& sizes_of(const TracedTensor* tensor) { return tensor->layout.sizes; }

bool same_sizes(const Executions& tensors) {
  return std::ranges::all_of(tensors,
                             [&](const TracedTensor* tensor) { return sizes_of(tensor) == sizes_of(tensors[0]); });
}

std::string text_of(const Sizes& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

}  // namespace

int dim_of_rows(const Executions& tensors) {
  const Sizes& whole = sizes_of(tensors[0]);
  int found = -1;
  for (size_t m = 1; m < tensors.size(); ++m) {
    const Sizes& part = sizes_of(tensors[m]);
    if (part.size() != whole.size()) return -2;
    for (size_t d = 0; d < whole.size(); ++d) {
      if (part[d] == whole[d] || found == static_cast<int>(d)) continue;
      if (found >= 0) return -2;
      found = static_cast<int>(d);
    }
  }
  return found;
}

Labels::Labels(std::vector<int64_t> rows, std::function<RowType(const std::string&)> refuse)
    : rows_(std::move(rows)), refuse_(std::move(refuse)), memory_(rows_.size() + 1) {
  for (size_t m = 0; m < rows_.size(); ++m) microbatch_of_.insert(microbatch_of_.end(), rows_[m], m);
}

int Labels::number_of(const Power& power) {
  const auto known = std::ranges::find(powers_, power);
  if (known != powers_.end()) return static_cast<int>(known - powers_.begin());
  powers_.push_back(power);
  return static_cast<int>(powers_.size()) - 1;
}

/// Null if the memory was used with elements of another size.
std::vector<Labels::Label>* Labels::memory_of(size_t execution, const TracedTensor& tensor) {
  Storage& storage = memory_[execution][tensor.storage];
  const size_t element_size = c10::elementSize(tensor.dtype);
  if (storage.element_size == 0) storage.element_size = element_size;
  if (storage.element_size != element_size) return nullptr;
  if (static_cast<int64_t>(storage.labels.size()) < tensor.storage_elements)
    storage.labels.resize(tensor.storage_elements, {kUnset, 0});
  return &storage.labels;
}

std::vector<Labels::Label> Labels::labels_of(size_t execution, const TracedTensor& tensor) {
  std::vector<Label> found;
  const std::vector<Label>* const memory = memory_of(execution, tensor);
  for_each_offset(tensor.layout,
                  [&](int64_t offset) { found.push_back(memory ? memory->at(offset) : Label{kUnset, 0}); });
  return found;
}

/// A number that the program computed: equal in all executions, or in proportion to the rows.
RowType Labels::literal(const Executions& tensors) {
  const std::optional<Rational> whole = rational_of(tensors[0]->number.value());
  const int64_t all = std::accumulate(rows_.begin(), rows_.end(), int64_t{0});
  bool equal = true, with_rows = whole.has_value(), against_rows = with_rows;
  for (size_t m = 0; m < rows_.size(); ++m) {
    const double number = tensors[m + 1]->number.value();
    equal = equal && number == *tensors[0]->number;
    const std::optional<Rational> part = rational_of(number);
    with_rows = with_rows && part && *part * all == *whole * rows_[m];
    against_rows = against_rows && part && *part * rows_[m] == *whole * all;
  }
  if (equal) return {};
  if (with_rows) return {.power = {{kRows, -1}}};
  if (against_rows) return {.power = {{kRows, 1}}};
  return refuse_("a number differs between the whole batch and its micro-batches, and not in proportion to the rows");
}

std::vector<int32_t> Labels::cut(const std::vector<int32_t>& rows, size_t microbatch) const {
  std::vector<int32_t> found;
  for (const int32_t row : rows)
    if (row >= 0 && microbatch_of_.at(row) == microbatch) found.push_back(row);
  return found;
}

/// The row of each slice along `dim`; false if a slice has several.
bool Labels::slices(const TracedTensor& tensor, int dim, const std::vector<Label>& labels, std::vector<int32_t>& rows) {
  const Sizes& sizes = tensor.layout.sizes;
  rows.assign(sizes[dim], kAnyRow);
  const int64_t inner = std::accumulate(sizes.begin() + dim + 1, sizes.end(), int64_t{1}, std::multiplies<>());
  for (size_t i = 0; i < labels.size(); ++i) {
    int32_t& row = rows[static_cast<int64_t>(i) / inner % sizes[dim]];
    if (labels[i].what == kZero || labels[i].what == kAnyRow) continue;
    if (row != kAnyRow && row != labels[i].what) return false;
    row = labels[i].what;
  }
  return true;
}

RowType Labels::read_rows(const Executions& tensors, const std::vector<std::vector<Label>>& labels,
                          const Power& power) {
  RowType type{.kind = RowType::Kind::Rows, .power = power, .dim = dim_of_rows(tensors)};
  if (type.dim == -2) return refuse_("rows lie along several dimensions of an operand");
  if (type.dim == -1) return refuse_("some rows are chosen, as many for the whole batch as for a micro-batch");
  if (!slices(*tensors[0], type.dim, labels[0], type.rows))
    return refuse_("rows do not lie along one dimension of an operand");
  const auto any = std::ranges::count(type.rows, kAnyRow);
  if (any != 0 && any != static_cast<int64_t>(type.rows.size()))
    return refuse_("some slices of an operand belong to rows, others to none");
  const auto all = static_cast<int64_t>(microbatch_of_.size());
  for (size_t m = 0; m < rows_.size(); ++m) {
    std::vector<int32_t> part;
    if (!slices(*tensors[m + 1], type.dim, labels[m + 1], part))
      return refuse_("rows do not lie along one dimension of an operand");
    const bool fits =
        any == 0 ? part == cut(type.rows, m)
                 : std::ranges::count(part, kAnyRow) == static_cast<int64_t>(part.size()) &&
                       static_cast<int64_t>(part.size()) * all == static_cast<int64_t>(type.rows.size()) * rows_[m];
    if (!fits)
      return refuse_("micro-batch " + std::to_string(m) + " arranges its rows in another way than the whole batch");
  }
  return type;
}

RowType Labels::read(const Executions& tensors) {
  if (tensors[0]->literal) return literal(tensors);
  if (std::ranges::any_of(tensors, [](const TracedTensor* tensor) { return !tensor->content.empty(); })) {
    const bool equal = std::ranges::all_of(
        tensors, [&](const TracedTensor* tensor) { return tensor->content == tensors[0]->content; });
    if (equal && same_sizes(tensors)) return {};
    return refuse_("an operand that no operator made differs between the whole batch and its micro-batches");
  }
  std::vector<std::vector<Label>> labels;
  std::set<int32_t> kinds;
  std::set<int32_t> powers;
  for (size_t e = 0; e < tensors.size(); ++e) {
    labels.push_back(labels_of(e, *tensors[e]));
    for (const Label& label : labels.back()) {
      if (label.what <= kFirstCause) return not_separable(kFirstCause - label.what);
      if (label.what == kUnset) return refuse_("an operand has elements that no operator wrote");
      if (label.what == kZero) continue;
      kinds.insert(is_row(label.what) ? kAnyRow : label.what);
      powers.insert(label.power);
    }
  }
  if (kinds.empty()) return {.kind = RowType::Kind::Zero};
  if (kinds.size() > 1) return refuse_("an operand has rows, sums and values without rows side by side");
  if (powers.size() > 1) return refuse_("an operand has parts of different weights");
  const Power& power = powers_[*powers.begin()];
  if (kinds.contains(kAnyRow)) return read_rows(tensors, labels, power);
  const auto kind = kinds.contains(kSum) ? RowType::Kind::Sum : RowType::Kind::Replicated;
  if (same_sizes(tensors)) return {.kind = kind, .power = power};
  const int dim = dim_of_rows(tensors);
  const bool repeated =
      dim >= 0 && kind == RowType::Kind::Replicated && std::ranges::all_of(tensors, [dim](const TracedTensor* tensor) {
        return tensor->layout.strides[dim] == 0 || tensor->layout.sizes[dim] == 1;
      });
  if (repeated) return resized({.kind = kind, .power = power}, tensors);
  return refuse_("a value without rows is cut to the number of rows");
}

RowType Labels::resized(const RowType& type, const Executions& tensors) {
  if (!type.is(RowType::Kind::Replicated) || same_sizes(tensors)) return type;
  const int dim = dim_of_rows(tensors);
  if (dim < 0) return refuse_("a result has other sizes for a micro-batch than for the whole batch");
  return {.kind = RowType::Kind::Rows,
          .power = type.power,
          .dim = dim,
          .rows = std::vector<int32_t>(sizes_of(tensors[0])[dim], kAnyRow)};
}

/// Why tensors of these sizes cannot have the type; empty if they can.
std::string Labels::why_unfit(const Executions& tensors, const RowType& type) const {
  const auto all = static_cast<int64_t>(microbatch_of_.size());
  for (size_t m = 0; m < rows_.size(); ++m) {
    Sizes wanted = sizes_of(tensors[0]);
    if (type.is(RowType::Kind::Rows)) {
      const bool any = std::ranges::count(type.rows, kAnyRow) > 0;
      wanted.at(type.dim) = any ? wanted[type.dim] * rows_[m] / all : static_cast<int64_t>(cut(type.rows, m).size());
    }
    if (sizes_of(tensors[m + 1]) != wanted)
      return "a result for micro-batch " + std::to_string(m) + " has the sizes " + text_of(sizes_of(tensors[m + 1])) +
             " in place of " + text_of(wanted);
  }
  return {};
}

void Labels::write(const Executions& tensors, const RowType& type) {
  using Kind = RowType::Kind;
  RowType fit = type;
  if (type.is(Kind::Replicated) || type.is(Kind::Sum) || type.is(Kind::Rows))
    if (const std::string why = why_unfit(tensors, type); !why.empty()) fit = refuse_(why);
  const int32_t power = number_of(fit.power);
  for (size_t e = 0; e < tensors.size(); ++e) {
    std::vector<Label>* const memory = memory_of(e, *tensors[e]);
    if (memory == nullptr) continue;  // read() finds no label
    const Sizes& sizes = sizes_of(tensors[e]);
    std::vector<int32_t> rows;
    int64_t inner = 1;
    if (fit.is(Kind::Rows)) {
      rows = e == 0 || fit.rows.at(0) == kAnyRow ? fit.rows : cut(fit.rows, e - 1);
      inner = std::accumulate(sizes.begin() + fit.dim + 1, sizes.end(), int64_t{1}, std::multiplies<>());
    }
    const int32_t what = fit.is(Kind::NotSeparable) ? kFirstCause - fit.cause
                         : fit.is(Kind::Zero)       ? kZero
                         : fit.is(Kind::Sum)        ? kSum
                                                    : kReplicated;
    int64_t i = 0;
    for_each_offset(tensors[e]->layout, [&](int64_t offset) {
      memory->at(offset) = {fit.is(Kind::Rows) ? rows[i / inner % sizes[fit.dim]] : what, power};
      ++i;
    });
  }
}

void Labels::write_rows(size_t execution, const TracedTensor& tensor, int dim, int first_row) {
  std::vector<Label>& memory = *memory_of(execution, tensor);
  const Sizes& sizes = tensor.layout.sizes;
  const int64_t inner = std::accumulate(sizes.begin() + dim + 1, sizes.end(), int64_t{1}, std::multiplies<>());
  int64_t i = 0;
  for_each_offset(tensor.layout, [&](int64_t offset) {
    memory.at(offset) = {static_cast<int32_t>(first_row + i / inner % sizes[dim]), 0};
    ++i;
  });
}

void Labels::forget(const Executions& tensors) {
  for (size_t e = 0; e < tensors.size(); ++e)
    if (std::vector<Label>* const memory = memory_of(e, *tensors[e])) std::ranges::fill(*memory, Label{kUnset, 0});
}

}  // namespace plumbline::proof
