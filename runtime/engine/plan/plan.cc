#include "runtime/engine/plan/plan.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "runtime/engine/plan/shape_key.h"
#include "runtime/error.h"

namespace plumbline::engine {
namespace {

std::string shapes_text(const std::vector<at::Tensor>& inputs) {
  std::string text;
  for (const at::Tensor& input : inputs) text += graph::describe(input) + (input.requires_grad() ? "* " : " ");
  return text;
}

/// The properties on which the pipes of two shapes must agree, as far as they concern the first `stages` stages.
std::string structure_text(const split::Pipe& pipe, int stages) {
  std::string text = std::to_string(std::min(stages, pipe.num_stages())) + " stages;";
  for (const split::Boundary& boundary : pipe.boundaries) {
    std::string consumers;
    for (const auto& consumer : boundary.consumers)
      if (consumer.stage < stages) consumers += std::to_string(consumer.stage) + ",";
    if (!consumers.empty()) text += " " + boundary.name + ":" + std::to_string(boundary.producer) + "->" + consumers;
  }
  return text;
}

/// Puts a pipe with all stages first.
void longest_first(Plan& plan) {
  const auto longest = std::ranges::max_element(plan.pipes, {}, &split::Pipe::num_stages);
  const auto index = static_cast<int>(longest - plan.pipes.begin());
  std::iter_swap(plan.pipes.begin(), longest);
  for (int& variant : plan.variants)
    if (variant == 0 || variant == index) variant = index - variant;
}

void require_same_structure(const Plan& plan, bool training, const std::vector<std::vector<at::Tensor>>& microbatches) {
  const split::Pipe& first = plan.pipes.front();
  for (size_t m = 0; m < plan.variants.size(); ++m) {
    const split::Pipe& pipe = plan.pipe(static_cast<int>(m));
    const int stages = training ? first.num_stages() : pipe.num_stages();
    const std::string wanted = structure_text(first, stages), other = structure_text(pipe, stages);
    if (other != wanted)
      throw InputError("plan: the model is cut differently for micro-batches of " + shapes_text(microbatches[m]) + "(" +
                       other + ") than for others (" + wanted + ")");
  }
}

/// Boundaries of a shorter pipe are in the order of the first pipe's.
std::vector<int> boundaries_of_channels(const Plan& plan, const split::Pipe& pipe) {
  std::vector<int> boundary_of;
  int next = -1, of_first = -1;
  for (const Channel& channel : plan.channels) {
    const bool carries = channel.consumer_stage < pipe.num_stages();
    if (carries && std::exchange(of_first, channel.boundary) != channel.boundary) ++next;
    boundary_of.push_back(carries ? next : -1);
  }
  return boundary_of;
}

}  // namespace

Plan make_plan(const PipeSource& source, bool training, const std::vector<std::vector<at::Tensor>>& microbatches) {
  Plan plan;
  std::unordered_map<ShapeKey, int, ShapeKeyHash> known;
  for (const std::vector<at::Tensor>& inputs : microbatches) {
    ShapeKey key;
    append_shapes(inputs, key);
    const auto [it, inserted] = known.emplace(std::move(key), static_cast<int>(plan.pipes.size()));
    plan.variants.push_back(it->second);
    if (inserted) plan.pipes.push_back(source(training, inputs));
  }
  longest_first(plan);
  require_same_structure(plan, training, microbatches);
  const split::Pipe& first = plan.pipes.front();
  plan.outgoing.resize(first.num_stages());
  plan.incoming.resize(first.num_stages());
  for (size_t b = 0; b < first.boundaries.size(); ++b) {
    for (const split::Boundary::Consumer& consumer : first.boundaries[b].consumers) {
      plan.outgoing[first.boundaries[b].producer].push_back(static_cast<int>(plan.channels.size()));
      plan.incoming[consumer.stage].push_back(static_cast<int>(plan.channels.size()));
      plan.channels.push_back({static_cast<int>(b), consumer.stage, consumer.input});
    }
  }
  for (const split::Pipe& pipe : plan.pipes) plan.boundary_of.push_back(boundaries_of_channels(plan, pipe));
  return plan;
}

std::vector<schedule::StageEdge> stage_edges(const split::Pipe& pipe) {
  std::vector<schedule::StageEdge> edges;
  for (const split::Boundary& boundary : pipe.boundaries)
    for (const split::Boundary::Consumer& consumer : boundary.consumers) {
      const schedule::StageEdge edge{boundary.producer, consumer.stage};
      if (std::find(edges.begin(), edges.end(), edge) == edges.end()) edges.push_back(edge);
    }
  return edges;
}

}  // namespace plumbline::engine
