#include "conformance/program/prepare.h"

#include <ATen/ops/ones.h>

#include "runtime/capture/annotate.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/split/policy/policy.h"
#include "runtime/split/split.h"
#include "runtime/text/number.h"
#include "runtime/text/one_line.h"

namespace plumbline::program {
namespace {

split::SplitPoint parse_point(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {text};
  const std::string where = text.substr(colon + 1);
  if (colon == 0 || (where != "begin" && where != "end"))
    throw InputError("--split: '" + text + "' is not MODULE, MODULE:begin or MODULE:end");
  return {text.substr(0, colon),
          where == "begin" ? split::SplitPoint::Where::Beginning : split::SplitPoint::Where::End};
}

void choose_multi_use(const std::vector<std::string>& settings, split::SplitOptions& options) {
  options.multi_use = split::MultiUse::Transmit;
  for (const std::string& setting : settings) {
    const size_t equals = setting.rfind('=');
    const std::string name = equals == std::string::npos ? "" : setting.substr(0, equals);
    const std::string use = equals == std::string::npos ? setting : setting.substr(equals + 1);
    if (use != "transmit" && use != "replicate")
      throw InputError("--shared: '" + setting +
                       "': expected one of transmit, replicate, NAME=transmit, NAME=replicate");
    const split::MultiUse chosen = use == "transmit" ? split::MultiUse::Transmit : split::MultiUse::Replicate;
    if (equals == std::string::npos)
      options.multi_use = chosen;
    else
      options.multi_use_of[name] = chosen;
  }
}

split::SplitPolicy every_policy(const std::string& policy) {
  const size_t first = policy.find(':'), last = policy.rfind(':');
  const std::optional<int> n = parse_number<int>(std::string_view(policy).substr(last + 1));
  if (first == last || !n || *n < 1)
    throw InputError("--policy: '" + policy + "' is not every:CLASS:N (every N-th call of modules of that class)");
  return split::every_nth_call(policy.substr(first + 1, last - first - 1), *n);
}

split::SplitPolicy make_policy(const std::string& policy, int stages, const std::vector<at::Tensor>& inputs) {
  if (policy.starts_with("every:")) return every_policy(policy);
  if (policy == "flops") return split::equal_estimated_flops(stages);
  if (policy == "measured-flops") return split::equal_measured_flops(stages, inputs);
  if (policy == "bytes") return split::equal_parameter_bytes(stages);
  if (policy == "time") return split::optimal_partition(stages, inputs);
  throw InputError("--policy: '" + policy + "': expected one of flops, measured-flops, bytes, time, every:CLASS:N");
}

bool has_markers(const graph::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const graph::Node& node) { return node.is_split(); });
}

/// No policy if split points, markers or a single stage leave nothing to choose.
split::SplitPolicy choose_policy(const ProgramSplit& split, int default_stages, bool markers,
                                 const std::vector<at::Tensor>& inputs) {
  if (!split.points.empty() && (split.stages > 0 || !split.policy.empty()))
    throw InputError("--split sets the stage borders; leave out --stages and --policy");
  if (split.stages > 0 && markers)
    throw InputError("--stages: the program holds pipe_split() markers, which say where to cut it; leave out --stages");
  const bool every = split.policy.starts_with("every:");
  if (every && split.stages > 0)
    throw InputError("--policy " + split.policy + " determines the number of stages; leave out --stages");
  const bool chosen = split.points.empty() && !markers;
  const int stages = split.stages > 0 ? split.stages : chosen || !split.policy.empty() ? default_stages : 1;
  if (!split.policy.empty() && !every && stages == 1 && split.stages == 0)
    throw InputError("--policy " + split.policy + " needs --stages N");
  const split::SplitPolicy policy = make_policy(split.policy.empty() ? "flops" : split.policy, stages, inputs);
  return every || stages > 1 ? policy : split::SplitPolicy();
}

/// The sample inputs, or ones if they cannot be read: integers among them must be valid as indices.
std::vector<at::Tensor> example_inputs(const capture::ExportedProgram& program) {
  if (program.sample_inputs.size() == program.graph.inputs.size()) return program.sample_inputs;
  std::vector<at::Tensor> inputs;
  for (const graph::GraphInput& input : program.graph.inputs) {
    const graph::Value& value = program.graph.values[input.value];
    inputs.push_back(at::ones(value.sizes, at::TensorOptions().dtype(value.dtype)));
  }
  return inputs;
}

/// Runs the program once, on its example inputs, which it returns.
std::vector<at::Tensor> annotated_by_example(capture::ExportedProgram& program, const std::filesystem::path& archive) {
  try {
    std::vector<at::Tensor> example = example_inputs(program);
    capture::annotate(program.graph, example);
    return example;
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    throw InputError(archive.string() +
                     ": the program does not run on its sample inputs: " + one_line(graph::error_line(error)));
  }
}

}  // namespace

PreparedProgram prepare_program(const std::filesystem::path& archive, const ProgramSplit& split,
                                const std::string& loss, int default_stages) {
  PreparedProgram prepared{capture::read_program(archive), {}, false, {}};
  graph::Graph& graph = prepared.program.graph;
  const std::vector<at::Tensor> example = annotated_by_example(prepared.program, archive);
  prepared.loss = choose_loss(loss, prepared.program);
  prepared.has_backward = graph.values[graph.outputs[prepared.loss.output]].requires_grad;

  split::SplitOptions options;
  options.loss_outputs = std::vector<int>{prepared.loss.output};
  choose_multi_use(split.shared, options);
  options.route = split.route;
  options.carry_random_state = true;
  for (const std::string& point : split.points) options.points.push_back(parse_point(point));
  if (!options.points.empty() && (split.stages > 0 || !split.policy.empty()))
    throw InputError("--split sets the stage borders; leave out --stages and --policy");
  options.policy = choose_policy(split, default_stages, has_markers(graph), example);
  prepared.pipe = plumbline::split::split(graph, options);
  return prepared;
}

}  // namespace plumbline::program
