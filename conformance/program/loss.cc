#include "conformance/program/loss.h"

#include "reference/loss.h"
#include "runtime/error.h"
#include "runtime/split/loss_mark.h"
#include "runtime/text/number.h"

namespace plumbline::program {
namespace {

bool is_floating_scalar(const graph::Graph& graph, size_t output) {
  const graph::ValueId v = graph.outputs[output];
  return v != graph::kNoValue && graph.values[v].sizes.empty() && at::isFloatingType(graph.values[v].dtype);
}

ProgramLoss suggested_loss(const capture::ExportedProgram& program) {
  const graph::Graph& graph = program.graph;
  if (const std::optional<int> marked = split::find_loss(program.output_tree, std::nullopt))
    return {{reference::LossKind::Output}, *marked, ""};
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (is_floating_scalar(graph, i)) return {{reference::LossKind::Output}, static_cast<int>(i), ""};
  return {{reference::LossKind::Sum, reference::Reduction::Sum}, 0, ""};
}

ProgramLoss parse_loss(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon), rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon == std::string::npos && kind == "sum")
    return {{reference::LossKind::Sum, reference::Reduction::Sum}, 0, ""};
  if (colon == std::string::npos && kind == "mean")
    return {{reference::LossKind::Sum, reference::Reduction::Mean}, 0, ""};
  if (kind == "mse" && !rest.empty()) return {{reference::LossKind::Mse, reference::Reduction::Mean}, 0, rest};
  if (kind == "cross-entropy" && !rest.empty())
    return {{reference::LossKind::CrossEntropy, reference::Reduction::Mean}, 0, rest};
  if (const auto output = parse_number<int>(rest); kind == "output" && output && *output >= 0)
    return {{reference::LossKind::Output}, *output, ""};
  throw InputError(
      "--loss: '" + text +
      "': expected one of output:K, sum, mean, mse:TARGET, cross-entropy:TARGET (K: the number of a program "
      "output; TARGET: the name of a tensor in the inputs file)");
}

}  // namespace

ProgramLoss choose_loss(const std::string& text, const capture::ExportedProgram& program) {
  const ProgramLoss loss = text.empty() ? suggested_loss(program) : parse_loss(text);
  const graph::Graph& graph = program.graph;
  if (loss.output >= static_cast<int>(graph.outputs.size()))
    throw InputError("--loss: there is no output " + std::to_string(loss.output) + "; the program has " +
                     std::to_string(graph.outputs.size()) + " outputs");
  const graph::ValueId v = graph.outputs[loss.output];
  if (v == graph::kNoValue || !at::isFloatingType(graph.values[v].dtype))
    throw InputError(
        "--loss: output " + std::to_string(loss.output) + " is " +
        (v == graph::kNoValue ? "not a tensor" : graph::describe(graph.values[v].dtype, graph.values[v].sizes)) +
        "; a loss is computed from a floating-point tensor");
  if (loss.spec.kind == reference::LossKind::Output && !graph.values[v].sizes.empty())
    throw InputError("--loss: output " + std::to_string(loss.output) + " is " +
                     graph::describe(graph.values[v].dtype, graph.values[v].sizes) +
                     "; output:K takes a scalar, use sum, mean, mse:TARGET or cross-entropy:TARGET");
  return loss;
}

std::string to_string(const ProgramLoss& loss) {
  switch (loss.spec.kind) {
    case reference::LossKind::Output:
      return "output:" + std::to_string(loss.output);
    case reference::LossKind::Sum:
      return loss.spec.reduction == reference::Reduction::Mean ? "mean" : "sum";
    case reference::LossKind::Mse:
      return "mse:" + loss.target;
    case reference::LossKind::CrossEntropy:
      return "cross-entropy:" + loss.target;
  }
  return "";
}

engine::LossFunction loss_function(const ProgramLoss& loss) {
  return [loss](const std::vector<at::Tensor>& outputs, const at::Tensor& target) {
    return reference::compute_loss(loss.spec, {outputs.at(loss.output)}, target);
  };
}

}  // namespace plumbline::program
