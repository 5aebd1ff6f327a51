#include "runtime/engine/stage/stage_blocks.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>

#include "runtime/backward/recompute.h"
#include "runtime/engine/stage/written_attributes.h"
#include "runtime/error.h"
#include "runtime/graph/run/program.h"
#include "runtime/split/split.h"

namespace plumbline::engine {
namespace {

bool is_block(const graph::ModuleCall& module, const std::string& blocks_in) {
  return module.name.size() > blocks_in.size() + 1 && module.name.starts_with(blocks_in + ".") &&
         module.name.find('.', blocks_in.size() + 1) == std::string::npos;
}

void refuse_leaves_in_branches(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes)
    for (const auto& branch : node.branches) {
      for (const graph::Attribute& attribute : branch->attributes)
        if (attribute.tensor.defined() && attribute.tensor.requires_grad())
          throw InputError("recompute: a branch of a cond holds parameter '" + attribute.name +
                           "'; make it an operand of the cond");
      refuse_leaves_in_branches(*branch);
    }
}

/// A graph whose attributes became inputs, after its own: first those that it only reads, then those it writes.
struct Lifted {
  graph::Graph graph;
  std::vector<at::Tensor> read, written;
};

Lifted lift_attributes(graph::Graph graph) {
  refuse_leaves_in_branches(graph);
  const std::set<graph::ValueId> written = written_attributes(graph);
  Lifted lifted;
  for (const bool writes : {false, true})
    for (const graph::Attribute& attribute : graph.attributes) {
      if (attribute.value == graph::kNoValue || written.contains(attribute.value) != writes) continue;
      if (writes && attribute.tensor.requires_grad())
        throw InputError("recompute: forward writes parameter '" + attribute.name +
                         "' in place; a block that is run again must find it as it was");
      (writes ? lifted.written : lifted.read).push_back(attribute.tensor);
      graph.inputs.push_back({attribute.name, attribute.value});
    }
  graph.attributes.clear();
  lifted.graph = std::move(graph);
  return lifted;
}

/// Runs a lifted graph, the first time on the attributes that it writes, later on copies of their earlier content.
struct BlockRun {
  graph::Program program;
  std::vector<at::Tensor> written;
  bool first = true;

  void operator()(std::span<const at::Tensor> values, std::vector<at::Tensor>& outputs) {
    std::vector<at::Tensor> arguments(values.begin(), values.end());
    for (at::Tensor& tensor : written) {
      const at::Tensor before = tensor.clone();
      arguments.push_back(first ? tensor : before);
      if (first) tensor = before;
    }
    first = false;
    program.run(arguments, outputs);
  }
};

/// Where blocks begin and end.
std::vector<int32_t> borders(const graph::Graph& graph, const std::string& blocks_in) {
  std::set<int32_t> cuts = {0, static_cast<int32_t>(graph.nodes.size())};
  for (const graph::ModuleCall& module : graph.module_calls)
    if (is_block(module, blocks_in)) cuts.insert({module.begin, module.end});
  if (cuts.size() == 1) return {0, 0};
  return {cuts.begin(), cuts.end()};
}

}  // namespace

/// The part of the graph between two borders.
struct StageBlocks::Piece {
  std::vector<int> inputs, outputs;  // boundaries; the first piece's inputs and the last one's outputs are the stage's
  std::vector<char> requires_grad;   // by output
  std::optional<graph::Program> program;
  bool recomputed = true;
  bool draws = false;
  c10::Device device = c10::kCPU;
  std::vector<at::Tensor> read, written;

  void run(std::span<const at::Tensor> arguments, std::vector<at::Tensor>& results) const {
    if (!recomputed) return program->run(arguments, results);
    backward::Block block = BlockRun{*program, written};
    if (draws) block = backward::with_same_random_numbers(std::move(block), device);
    backward::recompute_in_backward(std::move(block), arguments, read, results);
    // The node cannot know which of its outputs have no gradient.
    for (size_t i = 0; i < results.size(); ++i)
      if (!requires_grad[i] && results[i].defined() && results[i].requires_grad()) results[i] = results[i].detach();
  }
};

StageBlocks::StageBlocks(const graph::Graph& graph, const std::string& blocks_in, c10::Device device) {
  const std::vector<int32_t> cuts = blocks_in.empty() ? std::vector<int32_t>() : borders(graph, blocks_in);
  split::Pipe pipe;
  if (cuts.size() > 2) {
    split::SplitOptions options;
    options.policy = [&](const graph::Graph&) { return std::vector(cuts.begin() + 1, cuts.end() - 1); };
    pipe = split::split(graph, options);
    PLUMBLINE_CHECK(pipe.stages.size() + 1 == cuts.size(), "the blocks of a stage do not match their borders");
  } else {
    pipe.stages.push_back({graph, {}, {}});
  }
  boundaries_ = pipe.boundaries.size();
  for (size_t p = 0; p < pipe.stages.size(); ++p) {
    split::Stage& stage = pipe.stages[p];
    Piece piece;
    piece.device = device;
    piece.inputs = stage.inputs;
    piece.outputs = stage.outputs;
    for (graph::ValueId v : stage.graph.outputs)
      piece.requires_grad.push_back(v != graph::kNoValue && stage.graph.values[v].requires_grad);
    for (size_t o = 0; o < stage.outputs.size(); ++o)
      piece.requires_grad[o] = pipe.boundaries[stage.outputs[o]].value.requires_grad;
    piece.recomputed =
        blocks_in.empty() || std::any_of(graph.module_calls.begin(), graph.module_calls.end(), [&](const auto& module) {
          return is_block(module, blocks_in) && module.begin <= cuts[p] && cuts[p + 1] <= module.end;
        });
    if (piece.recomputed) {
      Lifted lifted = lift_attributes(std::move(stage.graph));
      piece.read = std::move(lifted.read);
      piece.written = std::move(lifted.written);
      stage.graph = std::move(lifted.graph);
    }
    piece.draws = std::any_of(stage.graph.nodes.begin(), stage.graph.nodes.end(), &graph::draws_random_numbers);
    piece.program.emplace(stage.graph);
    pieces_.push_back(std::move(piece));
  }
}

StageBlocks::StageBlocks(StageBlocks&&) noexcept = default;
StageBlocks::~StageBlocks() = default;

void StageBlocks::run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> values(boundaries_), arguments, results;
  for (const Piece& piece : pieces_) {
    const bool is_first = &piece == &pieces_.front(), is_last = &piece == &pieces_.back();
    arguments.clear();
    for (int b : piece.inputs) arguments.push_back(values[b]);
    piece.run(is_first ? inputs : arguments, is_last ? outputs : results);
    for (size_t o = 0; o < piece.outputs.size(); ++o) values[piece.outputs[o]] = results[o];
  }
}

void check_recompute(const RecomputeOptions& options, const split::Pipe& pipe) {
  if (options.blocks_in.empty()) return;
  std::set<std::string> parents;
  for (const split::Stage& stage : pipe.stages) {
    if (stage.graph.nodes.empty()) return;
    for (const graph::ModuleCall& module : stage.graph.module_calls) {
      if (is_block(module, options.blocks_in)) return;
      if (const size_t dot = module.name.rfind('.'); dot != std::string::npos)
        parents.insert(module.name.substr(0, dot));
    }
  }
  constexpr size_t kShown = 3;  // by name: outer ones first
  std::string known;
  for (auto parent = parents.begin(); parent != parents.end() && !known.ends_with("..."); ++parent) {
    const bool cut = static_cast<size_t>(std::distance(parents.begin(), parent)) == kShown;
    known += (known.empty() ? "" : ", ") + (cut ? "..." : *parent);
  }
  throw InputError("recompute: no module directly inside '" + options.blocks_in +
                   "' was entered; modules that hold others here: " + (known.empty() ? "none" : known));
}

}  // namespace plumbline::engine
