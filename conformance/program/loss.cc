#include "conformance/program/loss.h"

#include <charconv>

#include "reference/loss.h"
#include "runtime/error.h"
#include "runtime/split/loss_mark.h"

namespace plumbline {
namespace {

bool is_floating_scalar(const Graph& graph, size_t output) {
  const ValueId v = graph.outputs[output];
  return v != kNoValue && graph.values[v].sizes.empty() && at::isFloatingType(graph.values[v].dtype);
}

ProgramLoss suggested_loss(const ExportedProgram& program) {
  const Graph& graph = program.graph;
  if (const std::optional<int> marked = find_loss(program.output_tree, std::nullopt))
    return {{LossKind::Output}, *marked, ""};
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (is_floating_scalar(graph, i)) return {{LossKind::Output}, static_cast<int>(i), ""};
  return {{LossKind::Sum, Reduction::Sum}, 0, ""};
}

ProgramLoss parse_loss(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon), rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon == std::string::npos && kind == "sum") return {{LossKind::Sum, Reduction::Sum}, 0, ""};
  if (colon == std::string::npos && kind == "mean") return {{LossKind::Sum, Reduction::Mean}, 0, ""};
  if (kind == "mse" && !rest.empty()) return {{LossKind::Mse, Reduction::Mean}, 0, rest};
  if (kind == "cross-entropy" && !rest.empty()) return {{LossKind::CrossEntropy, Reduction::Mean}, 0, rest};
  int output = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), output);
  if (kind == "output" && error == std::errc() && end == rest.data() + rest.size() && output >= 0)
    return {{LossKind::Output}, output, ""};
  throw InputError("--loss: '" + text +
                   "' is none of output:K, sum, mean, mse:TARGET, cross-entropy:TARGET (K: the number of a program "
                   "output; TARGET: the name of a tensor in the inputs file)");
}

}  // namespace

ProgramLoss choose_loss(const std::string& text, const ExportedProgram& program) {
  const ProgramLoss loss = text.empty() ? suggested_loss(program) : parse_loss(text);
  const Graph& graph = program.graph;
  if (loss.output >= static_cast<int>(graph.outputs.size()))
    throw InputError("--loss: there is no output " + std::to_string(loss.output) + "; the program has " +
                     std::to_string(graph.outputs.size()) + " outputs");
  const ValueId v = graph.outputs[loss.output];
  if (v == kNoValue || !at::isFloatingType(graph.values[v].dtype))
    throw InputError("--loss: output " + std::to_string(loss.output) + " is " +
                     (v == kNoValue ? "no tensor" : describe(graph.values[v].dtype, graph.values[v].sizes)) +
                     "; a loss is computed from a floating-point tensor");
  if (loss.spec.kind == LossKind::Output && !is_floating_scalar(graph, loss.output) && graph.values[v].sizes.size() > 0)
    throw InputError("--loss: output " + std::to_string(loss.output) + " is " +
                     describe(graph.values[v].dtype, graph.values[v].sizes) +
                     "; output:K takes a scalar, use sum, mean, mse:TARGET or cross-entropy:TARGET");
  return loss;
}

std::string to_string(const ProgramLoss& loss) {
  switch (loss.spec.kind) {
    case LossKind::Output:
      return "output:" + std::to_string(loss.output);
    case LossKind::Sum:
      return loss.spec.reduction == Reduction::Mean ? "mean" : "sum";
    case LossKind::Mse:
      return "mse:" + loss.target;
    case LossKind::CrossEntropy:
      return "cross-entropy:" + loss.target;
  }
  return "";
}

LossFunction loss_function(const ProgramLoss& loss) {
  return [loss](const std::vector<at::Tensor>& outputs, const at::Tensor& target) {
    return compute_loss(loss.spec, {outputs.at(loss.output)}, target);
  };
}

}  // namespace plumbline
