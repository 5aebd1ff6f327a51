#include "conformance/proof/executions/replay.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "conformance/proof/shapes/hollow_memory.h"
#include "conformance/proof/terms/operands_first.h"

namespace plumbline::proof {
namespace {

std::vector<std::optional<Value>> values_of(std::span<const at::Tensor> tensors, Memory& memory) {
  std::vector<std::optional<Value>> values;
  for (const at::Tensor& tensor : tensors)
    values.push_back(tensor.defined() ? std::optional(memory.read(tensor)) : std::nullopt);
  return values;
}

Picks moved(const Loops& loops, int64_t by) { return Picks(Loops{loops.first + by, loops.loops}); }

/// By how many elements the choice `b` lies behind `a`; nullopt if they differ in something else.
std::optional<int64_t> distance(const Value& a, const Value& b) {
  if (a.root != b.root || a.sizes != b.sizes || !a.picks != !b.picks) return std::nullopt;
  if (!a.picks) return 0;
  if (!a.picks->loops() || !b.picks->loops()) return std::nullopt;
  const Loops &from = *a.picks->loops(), &to = *b.picks->loops();
  return from.loops == to.loops ? std::optional(to.first - from.first) : std::nullopt;
}

}  // namespace

Replay::Replay(Recorder& recorder, std::span<const Recorder::Computed> computed, std::span<const at::Tensor> rows,
               std::span<const at::Tensor> results)
    : recorder_(recorder), terms_(recorder.terms()), rows_(values_of(rows, recorder.memory())) {
  for (const std::optional<Value>& value : rows_)
    if (value && value->picks) ahead_.emplace(value->root, 0);
  for (const Recorder::Computed& one : computed) steps_.push_back({reference_to(one.id), one.action});
  for (const at::Tensor& tensor : results) {
    const Value value = recorder.memory().read(tensor);
    results_.push_back({tensor, value, reference_to(value.root)});
    if (ahead_.contains(value.root)) has_loops_ = has_loops_ && value.picks && value.picks->loops();
  }
}

Replay::Reference Replay::reference_to(const TermId& root) {
  visit_operands_first(
      terms_, root, [this](const TermId& id) { return known_.contains(id); },
      [this](const TermId& id, const Term& term) { known_.emplace(id, entry_for(id, term)); });
  return known_.at(root);
}

Replay::Reference Replay::entry_for(const TermId& id, const Term& term) {
  if (term.op == "elements" && ahead_.contains(term.operands.front())) {
    const std::optional<Choice> choice = choice_of(term.attributes);
    has_loops_ = has_loops_ && choice;
    if (choice) entries_.emplace_back(Rows{term.operands.front(), *choice});
    return choice ? Reference(entries_.size() - 1) : Reference(id);
  }
  std::vector<Reference> operands;
  for (const TermId& operand : term.operands) operands.push_back(known_.at(operand));
  if (std::ranges::none_of(operands, [](const Reference& one) { return std::holds_alternative<size_t>(one); }))
    return id;
  entries_.emplace_back(Operation{terms_.head_of(id), std::move(operands)});
  return entries_.size() - 1;
}

TermId Replay::now(const Reference& term) const {
  const size_t* const entry = std::get_if<size_t>(&term);
  return entry != nullptr ? now_[*entry] : std::get<TermId>(term);
}

TermId Replay::moved(const Rows& rows) const {
  const Picks picks = proof::moved(rows.choice.loops, ahead_.at(rows.input));
  return terms_.add({"elements", attributes_of(rows.choice.type, rows.choice.root_count, picks), {rows.input}});
}

bool Replay::make(std::span<const at::Tensor> rows) {
  const std::vector<std::optional<Value>> values = values_of(rows, recorder_.memory());
  if (!has_loops_ || values.size() != rows_.size()) return false;
  std::map<TermId, int64_t> ahead;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].has_value() != rows_[i].has_value()) return false;
    if (!values[i]) continue;
    const std::optional<int64_t> by = distance(*rows_[i], *values[i]);
    if (!by) return false;
    if (values[i]->picks) ahead.emplace(values[i]->root, *by);
  }
  ahead_ = std::move(ahead);
  now_.clear();
  std::vector<TermId> operands;
  for (const auto& entry : entries_) {
    if (const auto* const chosen = std::get_if<Rows>(&entry)) {
      now_.push_back(moved(*chosen));
      continue;
    }
    const auto& operation = std::get<Operation>(entry);
    operands.clear();
    for (const Reference& operand : operation.operands) operands.push_back(now(operand));
    now_.push_back(terms_.add(operation.head, operands));
  }
  return true;
}

void Replay::note(int microbatch) const {
  for (const Step& step : steps_)
    recorder_.occurrences().note(terms_.number_of(now(step.term)), {.microbatch = microbatch, .action = step.action});
}

std::vector<at::Tensor> Replay::results() const {
  std::vector<at::Tensor> made;
  for (const auto& [tensor, value, root] : results_) {
    Value here = value;
    here.root = now(root);
    if (const auto rows = ahead_.find(value.root); rows != ahead_.end())
      here.picks = std::make_shared<const Picks>(proof::moved(*value.picks->loops(), rows->second));
    made.push_back(hollow_tensor(tensor.sizes(), tensor.strides(), tensor.scalar_type()));
    recorder_.memory().define(made.back(), std::move(here));
  }
  return made;
}

}  // namespace plumbline::proof
