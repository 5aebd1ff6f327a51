#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "conformance/judge/verdict/verdict.h"
#include "conformance/recording/against.h"
#include "conformance/recording/against_parts.h"
#include "runtime/text/counted.h"
#include "runtime/text/significant.h"

namespace plumbline::conformance {
namespace {

std::string place(const AlignedValue& value) {
  return "`" + value.key.name + "`" + (value.stage < 0 ? "" : " (stage " + std::to_string(value.stage) + ")");
}

/// "layers.3#1" of "layers.3#1:out.hidden": one call of a module.
std::string_view call_of(std::string_view name) { return name.substr(0, name.find(':')); }

bool ends_at(std::string_view name, std::string_view side) { return name.substr(name.find(':') + 1).starts_with(side); }

/// The last value before values[first] of the same direction and micro-batch that `fits` accepts.
template <class Fits>
const AlignedValue* last_before(const std::vector<AlignedValue>& values, size_t first, Fits fits) {
  const ValueKey& key = values[first].key;
  for (size_t i = first; i-- > 0;) {
    const AlignedValue& value = values[i];
    if (value.key.kind == key.kind && value.key.microbatch == key.microbatch && fits(value)) return &value;
  }
  return nullptr;
}

std::string between(const AlignedValue& before, const AlignedValue& value) {
  std::string text = place(before) + " just before it agrees: look at the code between the two";
  if (before.stage >= 0 && value.stage >= 0 && before.stage != value.stage)
    text += ", on the way from stage " + std::to_string(before.stage) + " to stage " + std::to_string(value.stage);
  return text;
}

std::string where_forward(const std::vector<AlignedValue>& values, size_t first, int step) {
  const AlignedValue& value = values[first];
  const std::string module = "`" + module_of(value.key.name) + "`";
  if (!is_event(value.key.name)) {
    if (step == 0) return "the two runs do not start with the same parameters";
    return "the gradients of step " + std::to_string(step - 1) + " agreed: look at the optimizer's update";
  }
  const auto same_call = [&](const AlignedValue& other) {
    return is_event(other.key.name) && call_of(other.key.name) == call_of(value.key.name) &&
           ends_at(other.key.name, "in");
  };
  if (ends_at(value.key.name, "out") && last_before(values, first, same_call))
    return "its input agrees: look at the forward of " + module;
  const AlignedValue* before =
      last_before(values, first, [](const AlignedValue& other) { return is_event(other.key.name); });
  if (before) return between(*before, value);
  return "it is the first value of this micro-batch: do both runs get the same data?";
}

std::string where_backward(const std::vector<AlignedValue>& values, size_t first) {
  const AlignedValue& value = values[first];
  const std::string module = "`" + module_of(value.key.name) + "`";
  if (!is_event(value.key.name))
    return "the preceding gradients agree: look at the backward of " + module + ", its weights" +
           (value.summands.size() > 1 ? "; it is the sum over the copies of a tied parameter" : "");
  const auto same_call = [&](const AlignedValue& other) {
    return is_event(other.key.name) && call_of(other.key.name) == call_of(value.key.name) &&
           ends_at(other.key.name, "out");
  };
  if (ends_at(value.key.name, "in") && last_before(values, first, same_call))
    return "the gradient of its output agrees: look at the backward of " + module;
  const AlignedValue* before =
      last_before(values, first, [](const AlignedValue& other) { return is_event(other.key.name); });
  if (before) return between(*before, value);
  return "it is the first gradient of this micro-batch: look at the code between " + module +
         " and the loss, or at loss_scale";
}

/// Whether the copies of a tied parameter each kept their part of the gradient.
bool parts_of_a_sum(const std::vector<AlignedValue>& values, const AlignedValue& value) {
  std::vector<const AlignedValue*> copies;
  for (const AlignedValue& other : values)
    if (other.key.kind == value.key.kind && other.parameter == value.parameter && comparable(other) &&
        other.expected->shape == value.expected->shape)
      copies.push_back(&other);
  if (copies.size() < 2) return false;
  constexpr double kRoundings = 64;  // more than sums over a few micro-batches have, and nothing beside half of a sum
  for (int64_t i = 0; i < element_count(*value.expected); ++i) {
    double sum = 0, size = 0;
    for (const AlignedValue* copy : copies) {
      sum += element_as_double(*copy->actual, i);
      size += std::abs(element_as_double(*copy->actual, i));
    }
    const double gap = std::abs(sum - element_as_double(*value.expected, i));
    if (!(gap <= kRoundings * unit_roundoff(value.expected->dtype) * size)) return false;
  }
  return true;
}

std::string where_grad(const std::vector<AlignedValue>& values, const AlignedValue& value) {
  if (parts_of_a_sum(values, value))
    return "the gradients of its copies in several stages add up to the expected one: they were not added up";
  if (value.contributions_equal)
    return "the contribution of each micro-batch agrees: their sum, its scaling or a later change of it is wrong";
  return "the gradients of the modules' values agree, and the contributions of single micro-batches were not recorded "
         "by both runs: look at the weights' part of the backward of `" +
         module_of(value.key.name) + "`, at the order of the sum, and at later changes of it";
}

}  // namespace

Direction direction_of(reference::ResultKind kind) {
  switch (kind) {
    case reference::ResultKind::Forward:
    case reference::ResultKind::Output:
      return Direction::Forward;
    case reference::ResultKind::Loss:
      return Direction::Loss;
    case reference::ResultKind::Backward:
    case reference::ResultKind::InputGrad:
      return Direction::Backward;
    case reference::ResultKind::Partial:
    case reference::ResultKind::HookCalls:
    case reference::ResultKind::Accumulated:
    case reference::ResultKind::Grad:
    case reference::ResultKind::GradNorm:
      return Direction::Accumulation;
    case reference::ResultKind::Buffer:
    case reference::ResultKind::Param:
    case reference::ResultKind::OptimizerState:
      return Direction::Buffers;
  }
  return Direction::Buffers;
}

std::string_view direction_name(Direction direction) {
  static constexpr std::array<std::string_view, 5> names = {"forward", "loss", "backward", "accumulation", "buffers"};
  return names[static_cast<size_t>(direction)];
}

std::string module_of(std::string_view name) {
  if (is_event(name)) return std::string(name.substr(0, std::min(name.find('#'), name.find(':'))));
  const size_t dot = name.rfind('.');
  return std::string(dot == std::string_view::npos ? name : name.substr(0, dot));
}

std::string where_to_look(const std::vector<AlignedValue>& values, size_t first, int step) {
  const AlignedValue& value = values[first];
  switch (direction_of(value.key.kind)) {
    case Direction::Forward:
      return where_forward(values, first, step);
    case Direction::Loss:
      return "all forward values agree: look at the loss function, its targets, and the micro-batch that it is for";
    case Direction::Backward:
      return where_backward(values, first);
    case Direction::Accumulation:
      return where_grad(values, value);
    case Direction::Buffers:
      return "gradients agree: look for an extra or a missing update (by recomputation, shape inference or an "
             "evaluation)";
  }
  return {};
}

std::string report_text(const AgainstVerdict& verdict) {
  std::string text;
  const std::string in_steps = " in " + counted(verdict.steps, "step") + (verdict.steps == 1 ? "" : " of both");
  if (verdict.first) {
    text = "FIRST DIFFERENCE (" + verdict.direction + "): " + sentence(*verdict.first) + ulps_clause(*verdict.first);
    if (std::isfinite(verdict.norm_ratio) && verdict.norm_ratio >= 0)
      text += "; its norm is " + significant(verdict.norm_ratio, 9) + " times the expected one";
    text += "\n  " + verdict.where + "\n  " + std::to_string(verdict.differing - 1) +
            " more values differ in this step, mostly for this reason; " + std::to_string(verdict.compared()) +
            " were compared\n";
  } else if (verdict.compared() == 0) {
    text = "NOTHING COMPARED: the two recordings have no value in common\n";
  } else {
    text = (verdict.unknown_parameters.empty() ? "PASS: " : "INCOMPLETE: ") + std::to_string(verdict.compared()) +
           " values" + in_steps + " agree, " + std::to_string(verdict.equal) + " bit for bit";
    if (verdict.reordered > 0)
      text += ", " + std::to_string(verdict.reordered) + " gradients up to the order of their sum";
    if (verdict.rounded > 0)
      text += ", " + std::to_string(verdict.rounded) + " within what rounding moved in " +
              std::to_string(verdict.perturbed_runs) + " perturbed runs (at most " +
              significant(verdict.largest_ratio, 9) + " of the bound, " + verdict.largest_name + ")";
    text += "\n";
  }
  if (!verdict.unknown_parameters.empty()) {
    text += "  " + counted(std::ssize(verdict.unknown_parameters), "parameter") +
            " of the one-rank run unknown to the pipelined one, `" + verdict.unknown_parameters.front() +
            "` first: watch every stage, with `rename` if its names differ\n";
  }
  for (const std::string& note : verdict.notes) text += "  note: " + note + "\n";
  return text;
}

}  // namespace plumbline::conformance
