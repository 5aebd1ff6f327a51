#include "conformance/proof/rows/row_types.h"

#include <algorithm>
#include <array>
#include <utility>

#include "conformance/proof/rows/application.h"
#include "conformance/proof/rows/labels.h"
#include "conformance/proof/rows/lemmas.h"
#include "runtime/error.h"

namespace plumbline::proof {
namespace {

using RowKind = RowType::Kind;
using MarkKind = TracedMark::Kind;

/// Arguments that name the sizes of a result. They may differ with the rows: the result's sizes are checked.
bool names_sizes(const std::string& argument) {
  static constexpr std::array<std::string_view, 6> kNames = {"size",       "sizes",      "input_sizes",
                                                             "self_sizes", "input_size", "N"};
  return std::ranges::find(kNames, argument) != kNames.end();
}

class Pass {
 public:
  Pass(const Trace& whole, const std::vector<const Trace*>& parts, const std::vector<int64_t>& rows)
      : labels_(rows, [this](const std::string& why) { return refuse(why); }) {
    traces_.push_back(&whole);
    traces_.insert(traces_.end(), parts.begin(), parts.end());
    Rational all = 0;
    for (const int64_t count : rows) all += count;
    Share share{.of = "rows", .parts = {}};
    for (const int64_t count : rows) share.parts.push_back(Rational(count) / all);
    types_.shares.push_back(std::move(share));
  }

  StepTypes run() {
    const std::vector<TracedEvent>& whole = traces_[0]->events;
    for (event_ = 0; event_ < whole.size(); ++event_) {
      calls_.clear();
      if (const auto* const mark = std::get_if<TracedMark>(&whole[event_])) {
        if (!pass(*mark)) break;
      } else if (!pass(std::get<TracedCall>(whole[event_]))) {
        break;
      }
    }
    for (size_t e = 1; e < traces_.size() && types_.everywhere.empty(); ++e)
      if (traces_[e]->events.size() != whole.size()) refuse_everywhere("runs more operators for a micro-batch");
    return std::move(types_);
  }

 private:
  /// A cause at the present call.
  RowType refuse(const std::string& why) {
    Cause cause{.what = "", .op = "", .module = "", .event = event_};
    if (!calls_.empty()) {
      const TracedCall& call = *calls_[0];
      cause.op = call.op;
      cause.module = call.module;
      cause.what = call.op;
      if (!call.module.empty()) cause.what += " of " + call.module;
      if (call.backward) cause.what += " (backward)";
      cause.what += ": ";
    }
    cause.what += why;
    types_.causes.push_back(std::move(cause));
    return not_separable(static_cast<int>(types_.causes.size()) - 1);
  }
  void refuse_everywhere(const std::string& why) { types_.everywhere.push_back(refuse(why).cause); }

  /// The event of every execution; false if they part here.
  template <class Event>
  bool aligned(std::vector<const Event*>& events, const auto& is_same) {
    events.clear();
    for (const Trace* trace : traces_) {
      const Event* event = event_ < trace->events.size() ? std::get_if<Event>(&trace->events[event_]) : nullptr;
      if (event == nullptr || (!events.empty() && !is_same(*events[0], *event))) {
        refuse_everywhere("the program runs another operator here for micro-batch " +
                          std::to_string(events.size() - 1));
        return false;
      }
      events.push_back(event);
    }
    return true;
  }

  bool pass(const TracedMark& mark) {
    std::vector<const TracedMark*> marks;
    if (!aligned(marks, [](const TracedMark& a, const TracedMark& b) { return a.kind == b.kind && a.name == b.name; }))
      return false;
    Executions tensors;
    for (const TracedMark* one : marks) tensors.push_back(&one->tensor);
    const bool whole_has = tensors[0]->storage >= 0;
    const bool all_alike = std::ranges::all_of(
        tensors, [whole_has](const TracedTensor* tensor) { return (tensor->storage >= 0) == whole_has; });
    if (!all_alike) {
      const RowType type = refuse(mark.name + ": defined for the whole batch or for a micro-batch, but not for both");
      if (mark.kind != MarkKind::Gradient) types_.everywhere.push_back(type.cause);
      if (mark.kind == MarkKind::Gradient) types_.gradients[mark.name] = type;
      return mark.kind == MarkKind::Gradient;
    }
    if (!whole_has) return true;
    switch (mark.kind) {
      case MarkKind::Replicated:
        labels_.write(tensors, {});
        fixed_.emplace(tensors[0]->storage, mark.name);
        break;
      case MarkKind::Rows:
        for (size_t e = 0; e < marks.size(); ++e)
          labels_.write_rows(e, marks[e]->tensor, mark.dim, marks[e]->first_row);
        break;
      case MarkKind::Loss:
        types_.losses[mark.name] = as_sum(labels_.read(tensors));
        break;
      case MarkKind::Seed: {
        const RowType& loss = types_.losses.at(mark.name);
        labels_.write(tensors, loss.is(RowKind::NotSeparable) ? loss : RowType{.power = Power{} - loss.power});
        break;
      }
      case MarkKind::Gradient:
        types_.gradients[mark.name] = gradient(labels_.read(tensors), mark.name);
        break;
    }
    return true;
  }

  /// A value without rows is the sum of its products with the shares of rows.
  static RowType as_sum(RowType type) {
    if (!type.is(RowKind::Replicated)) return type;
    return {.kind = RowKind::Sum, .power = type.power + Power{{kRows, 1}}};
  }

  RowType gradient(const RowType& type, const std::string& name) {
    if (type.is(RowKind::NotSeparable) || type.is(RowKind::Zero)) return type;
    if (type.is(RowKind::Sum) && is_one(type.power)) return type;
    const Power needed = type.power + Power{{kRows, 1}};
    if (type.is(RowKind::Replicated) && is_one(needed)) return as_sum(type);
    return refuse("the gradient of " + name + " is no sum of the micro-batches' gradients");
  }

  bool pass(const TracedCall&) {
    const auto same_form = [](const TracedCall& a, const TracedCall& b) {
      return a.op == b.op && operands_of(a).size() == operands_of(b).size() && a.results.size() == b.results.size();
    };
    if (!aligned(calls_, same_form)) return false;
    const TracedCall& call = *calls_[0];
    if (writes_behind_first()) refuse_everywhere("writes a result to memory that the program has");
    types_.values += call.results.size();
    if (call.kind == Kind::Reserves) {
      for_results([&](const Executions& tensors, size_t) { labels_.forget(tensors); });
      return true;
    }
    std::vector<Operand> operands = read_operands();
    const bool makes_new = !is_view();
    if (makes_new || call.gives_numbers) write(types_of_results(operands));
    if (call.gives_numbers)
      for (const Operand& operand : operands)
        if (!operand.tensors.empty() && !(operand.type.is(RowKind::Replicated) && is_one(operand.type.power)))
          refuse_everywhere("a number that depends on rows leaves the tensors, and the program may follow it");
    return true;
  }

  static std::vector<const TracedTensor*> operands_of(const TracedCall& call) {
    std::vector<const TracedTensor*> all;
    for (const auto& tensors : call.tensors)
      for (const TracedTensor& tensor : tensors) all.push_back(&tensor);
    return all;
  }

  /// All tensors among the arguments; undefined ones, and those that are only overwritten, without executions.
  std::vector<Operand> read_operands() {
    const TracedCall& call = *calls_[0];
    std::vector<Operand> operands(operands_of(call).size());
    for (const TracedCall* one : calls_) {
      const std::vector<const TracedTensor*> all = operands_of(*one);
      for (size_t k = 0; k < all.size(); ++k)
        if (all[k]->storage >= 0) operands[k].tensors.push_back(all[k]);
    }
    const bool overwrites = writes_first() && (call.kind == Kind::Fills || call.kind == Kind::Copies || call.draws);
    for (size_t k = 0; k < operands.size(); ++k) {
      Executions& tensors = operands[k].tensors;
      if (k == 0 && overwrites) tensors.clear();
      if (tensors.size() == calls_.size())
        operands[k].type = labels_.read(tensors);
      else if (!tensors.empty())
        operands[k].type = refuse("an operand is undefined for the whole batch or for a micro-batch, but not for both");
    }
    if (scales_by_number()) add_number(operands);
    return operands;
  }

  bool writes_first() const {
    const auto& arguments = calls_[0]->schema->arguments();
    return !arguments.empty() && capture::is_written(arguments[0]);
  }

  /// An operator with out=, for example.
  bool writes_behind_first() const {
    const auto& arguments = calls_[0]->schema->arguments();
    return !arguments.empty() && std::any_of(arguments.begin() + 1, arguments.end(), capture::is_written);
  }

  /// All results show memory of operands that the call does not write.
  bool is_view() const {
    const TracedCall& call = *calls_[0];
    if (writes_first() || call.results.empty()) return false;
    const std::vector<const TracedTensor*> operands = operands_of(call);
    return std::ranges::all_of(call.results, [&](const TracedTensor& result) {
      return std::ranges::any_of(operands, [&](const TracedTensor* operand) {
        return operand->storage >= 0 && operand->storage == result.storage;
      });
    });
  }

  void for_results(const auto& visit) {
    for (size_t i = 0; i < calls_[0]->results.size(); ++i) {
      Executions tensors;
      for (const TracedCall* call : calls_)
        if (i < call->results.size() && call->results[i].storage >= 0) tensors.push_back(&call->results[i]);
      if (tensors.size() == calls_.size()) visit(tensors, i);
    }
  }

  Executions written() const {
    Executions tensors;
    for (const TracedCall* call : calls_) tensors.push_back(&call->tensors[0].at(0));
    return tensors;
  }

  /// Writes results, in place or new; operands that the call writes besides are not separable.
  void write(const std::vector<RowType>& types) {
    const TracedCall& call = *calls_[0];
    const auto& arguments = call.schema->arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!capture::is_written(arguments[i])) continue;
      for (size_t t = 0; t < call.tensors[i].size(); ++t) {
        Executions tensors;
        for (const TracedCall* one : calls_) tensors.push_back(&one->tensors[i].at(t));
        if (tensors[0]->storage < 0) continue;
        if (const auto fixed = fixed_.find(tensors[0]->storage); fixed != fixed_.end())
          refuse_everywhere(fixed->second + " is updated, once for each micro-batch");
        const bool in_place = i == 0 && t == 0 && !types.empty();
        labels_.write(tensors, in_place ? types[0] : refuse("an operand is written for each micro-batch"));
      }
    }
    if (writes_first()) return;
    for_results([&](const Executions& tensors, size_t i) { labels_.write(tensors, types.at(i)); });
  }

  std::vector<RowType> all_results(const RowType& type) const {
    return std::vector<RowType>(std::max<size_t>(1, calls_[0]->results.size()), type);
  }

  std::vector<RowType> types_of_results(std::vector<Operand>& operands) {
    const TracedCall& call = *calls_[0];
    if (call.draws) return all_results(refuse("random numbers are drawn for each micro-batch"));
    if (call.kind == Kind::Fills && call.fill) return all_results(filled());
    if (call.kind == Kind::Copies) return all_results(copied(operands));
    if (const std::string name = differing_argument(); !name.empty())
      return all_results(refuse("its argument " + name + " differs between the whole batch and its micro-batches"));
    for (const Operand& operand : operands)
      if (operand.type.is(RowKind::NotSeparable) && !is_unread(operand, operands)) return all_results(operand.type);
    return by_lemma(operands);
  }

  bool is_unread(const Operand& operand, const std::vector<Operand>& operands) const {
    const auto lemma = row_lemmas().find(calls_[0]->op);
    if (lemma == row_lemmas().end()) return false;
    return letters_of(lemma->second).unread.contains(&operand - operands.data());
  }

  RowType filled() {
    for (const TracedCall* call : calls_)
      if (call->fill != calls_[0]->fill) return refuse("fills with a number that differs between micro-batches");
    if (*calls_[0]->fill == 0) return {.kind = RowKind::Zero};
    return labels_.resized({}, first_result());
  }

  Executions first_result() const {
    if (writes_first()) return written();
    Executions tensors;
    for (const TracedCall* call : calls_) tensors.push_back(&call->results.at(0));
    return tensors;
  }

  RowType copied(const std::vector<Operand>& operands) {
    const Operand& source = operands.at(writes_first() ? 1 : 0);
    RowType type = source.type;
    if (type.is(RowKind::NotSeparable) || source.tensors.empty()) return type;
    const Executions to = first_result();
    const bool rounds = c10::isFloatingType(source.tensors[0]->dtype) && !c10::isFloatingType(to[0]->dtype);
    if (rounds && (type.is(RowKind::Sum) || !is_one(type.power))) return refuse("rounds a sum over the rows");
    const size_t skipped = to[0]->layout.sizes.size() - source.tensors[0]->layout.sizes.size();
    type.dim += static_cast<int>(skipped);
    return labels_.resized(type, to);
  }

  /// Whether the call multiplies or divides by a number, which then counts as an operand.
  bool scales_by_number() const { return calls_[0]->op == "aten::mul.Scalar" || calls_[0]->op == "aten::div.Scalar"; }

  void add_number(std::vector<Operand>& operands) {
    numbers_.clear();
    for (const TracedCall* call : calls_) {
      numbers_.emplace_back();
      numbers_.back().number = call->arguments.at(1).toScalar().toDouble();
      numbers_.back().literal = true;
    }
    Executions tensors;
    for (const TracedTensor& number : numbers_) tensors.push_back(&number);
    operands.push_back({.tensors = tensors, .type = labels_.read(tensors), .letters = {}});
  }

  /// An argument that is no tensor and has other values; empty: none.
  std::string differing_argument() const {
    const TracedCall& whole = *calls_[0];
    for (size_t i = 0; i < whole.arguments.size(); ++i) {
      const std::string& name = whole.schema->arguments()[i].name();
      if (names_sizes(name) || name == "output_mask" || scales_by_number()) continue;
      for (const TracedCall* call : calls_)
        if (argument_text(call->arguments[i]) != argument_text(whole.arguments[i])) return name;
    }
    return {};
  }

  Letters letters_of(RowLemma lemma) const {
    const TracedCall& call = *calls_[0];
    OperatorCall described{.schema = *call.schema, .arguments = call.arguments, .operands = {}, .results = {}};
    const auto sizes = [](const TracedTensor& tensor) {
      return tensor.storage < 0 ? std::nullopt : std::optional(tensor.layout.sizes);
    };
    for (const TracedTensor* operand : operands_of(call)) described.operands.push_back(sizes(*operand));
    if (call.results.empty()) described.results.push_back(sizes(*written()[0]));
    for (const TracedTensor& result : call.results) described.results.push_back(sizes(result));
    return lemma(described);
  }

  std::vector<RowType> by_lemma(std::vector<Operand>& operands) {
    const bool plain = std::ranges::all_of(operands, [](const Operand& operand) {
      return operand.tensors.empty() || (operand.type.is(RowKind::Replicated) && is_one(operand.type.power));
    });
    if (plain) return all_results({});
    const std::string& op = calls_[0]->op;
    const auto lemma = row_lemmas().find(op);
    if (lemma == row_lemmas().end()) return all_results(refuse("there is no lemma about this operator"));
    types_.lemmas.insert(op);
    const Letters letters = letters_of(lemma->second);
    for (size_t k = 0; k < operands.size(); ++k) {
      if (k < letters.operands.size()) operands[k].letters = letters.operands[k];  // a number has no dimensions
      if (letters.unread.contains(k)) operands[k].tensors.clear();
    }
    std::erase_if(operands, [](const Operand& operand) { return operand.tensors.empty(); });
    const AppliedCall applied{
        .calls = calls_,
        .first_result = first_result(),
        .shares_of_rows = types_.shares[kRows].parts,
        .refuse = [this](const std::string& why) { return refuse(why); },
        .share_of = [this](const Executions& tensors) { return share_of(tensors); },
        .resized = [this](const RowType& type, const Executions& tensors) { return labels_.resized(type, tensors); }};
    return apply_lemma(applied, std::move(operands), letters);
  }

  /// The share that each micro-batch has of a sum, of which tensors hold the numbers.
  std::optional<Power> share_of(const Executions& tensors) {
    Share share{.of = calls_[0]->op, .parts = {}};
    if (!tensors[0]->number || *tensors[0]->number == 0) return std::nullopt;
    const std::optional<Rational> whole = rational_of(*tensors[0]->number);
    for (size_t e = 1; e < tensors.size(); ++e) {
      const std::optional<Rational> part = rational_of(tensors[e]->number.value());
      if (!whole || !part) return std::nullopt;
      share.parts.push_back(*part / *whole);
    }
    const std::pair place(tensors[0]->storage, tensors[0]->layout.offset);
    const auto known = counts_.find(place);
    if (known != counts_.end() && types_.shares[known->second].parts == share.parts) return Power{{known->second, 1}};
    types_.shares.push_back(std::move(share));
    counts_[place] = static_cast<int>(types_.shares.size()) - 1;
    return Power{{counts_[place], 1}};
  }

  std::vector<const Trace*> traces_;  ///< first of the whole batch
  Labels labels_;
  StepTypes types_;
  std::map<int, std::string> fixed_;               ///< storages of parameters, buffers and replicated inputs
  std::map<std::pair<int, int64_t>, int> counts_;  ///< shares by the place of their sum
  std::vector<const TracedCall*> calls_;
  std::vector<TracedTensor> numbers_;  ///< that the present call multiplies or divides by, by execution
  size_t event_ = 0;
};

}  // namespace

StepTypes row_types(const Trace& whole, const std::vector<const Trace*>& parts, const std::vector<int64_t>& rows) {
  return Pass(whole, parts, rows).run();
}

}  // namespace plumbline::proof
