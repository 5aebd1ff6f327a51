#include "runtime/engine/plan/plan.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "runtime/engine/plan/shape_key.h"
#include "runtime/error.h"

namespace plumbline::engine {
namespace {

std::string shapes_text(const std::vector<at::Tensor>& inputs) {
  std::string text;
  for (const at::Tensor& input : inputs) text += graph::describe(input) + (input.requires_grad() ? "* " : " ");
  return text;
}

/// The properties on which the pipes of two shapes must agree.
std::string structure_text(const split::Pipe& pipe) {
  std::string text = std::to_string(pipe.num_stages()) + " stages;";
  for (const split::Boundary& boundary : pipe.boundaries) {
    text += " " + boundary.name + ":" + std::to_string(boundary.producer) + "->";
    for (const auto& consumer : boundary.consumers) text += std::to_string(consumer.stage) + ",";
    text += boundary.has_gradient ? "g" : "";
  }
  return text;
}

}  // namespace

Plan make_plan(const PipeSource& source, bool training, const std::vector<std::vector<at::Tensor>>& microbatches) {
  Plan plan;
  std::unordered_map<ShapeKey, int, ShapeKeyHash> known;
  std::string structure;  // of the first
  for (const std::vector<at::Tensor>& inputs : microbatches) {
    ShapeKey key;
    append_shapes(inputs, key);
    const auto [it, inserted] = known.emplace(std::move(key), static_cast<int>(plan.pipes.size()));
    plan.variants.push_back(it->second);
    if (!inserted) continue;
    plan.pipes.push_back(source(training, inputs));
    const std::string other = structure_text(plan.pipes.back());
    if (plan.pipes.size() == 1) structure = other;
    if (other != structure)
      throw InputError("plan: the model is cut differently for micro-batches of " + shapes_text(inputs) + "(" + other +
                       ") than for the first (" + structure + ")");
  }
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
