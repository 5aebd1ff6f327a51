#include "runtime/engine/plan/plan.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "runtime/engine/plan/agreement.h"
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

constexpr size_t kFields = 4;  // of an expectation: stage, micro-batch, value, shape

/// For each micro-batch and each boundary: the value that the rank expects.
Beliefs expectations(const Plan& plan) {
  Beliefs fields;
  for (size_t m = 0; m < plan.variants.size(); ++m)
    for (const split::Boundary& boundary : plan.pipe(static_cast<int>(m)).boundaries) {
      fields.push_back(std::to_string(boundary.producer));
      fields.push_back(std::to_string(m));
      fields.push_back(boundary.name);
      fields.push_back(graph::describe(boundary.value.dtype, boundary.value.sizes) +
                       (boundary.has_gradient ? "*" : ""));
    }
  return fields;
}

std::string where(std::span<const std::string> expectation) {
  return "stage " + expectation[0] + ", micro-batch " + expectation[1] + ", value '" + expectation[2] + "'";
}

/// How the expectations of a rank differ from those of rank 0.
std::string difference(std::span<const std::string> first, std::span<const std::string> theirs, size_t rank) {
  const std::string whose = "rank " + std::to_string(rank);
  for (size_t i = 0; i < std::min(first.size(), theirs.size()); i += kFields) {
    const auto a = first.subspan(i, kFields), b = theirs.subspan(i, kFields);
    if (std::ranges::equal(a, b)) continue;
    if (where(a) == where(b)) return where(a) + ": rank 0 has " + a[3] + ", " + whose + " has " + b[3];
    return where(a) + " on rank 0 is " + where(b) + " on " + whose + ": their models are cut differently";
  }
  return "rank 0 has " + std::to_string(first.size() / kFields) + " boundary values, " + whose + " has " +
         std::to_string(theirs.size() / kFields) + ": their models are cut differently";
}

/// Every rank captured the whole model, so all must expect the same.
std::string contradiction(std::span<const Beliefs> of_rank) {
  for (size_t rank = 1; rank < of_rank.size(); ++rank)
    if (of_rank[rank] != of_rank[0])
      return "shapes disagree before the first message: " + difference(of_rank[0], of_rank[rank], rank);
  return {};
}

}  // namespace

Plan make_plan(const PipeSource& source, bool training, const std::vector<std::vector<at::Tensor>>& microbatches) {
  Plan plan;
  std::unordered_map<ShapeKey, int, ShapeKeyHash> known;
  std::map<std::string, int> variant_of_shapes;
  for (const std::vector<at::Tensor>& inputs : microbatches) {
    ShapeKey key;
    append_shapes(inputs, key);
    const auto [it, inserted] = known.emplace(std::move(key), static_cast<int>(plan.pipes.size()));
    if (inserted) {
      plan.pipes.push_back(source(training, inputs));
      variant_of_shapes.emplace(shapes_text(inputs), it->second);
    }
    plan.variants.push_back(it->second);
  }
  const split::Pipe& first = plan.pipes.front();
  for (const auto& [shapes, index] : variant_of_shapes)
    if (structure_text(plan.pipes[index]) != structure_text(first))
      throw InputError("plan: the model is cut differently for micro-batches of " + shapes + "(" +
                       structure_text(plan.pipes[index]) + ") than for the first (" + structure_text(first) + ")");
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

void check_with_peers(const Plan& plan, transport::Transport& transport, const transport::Deadline& deadline) {
  if (transport.size() == 1) return;
  try {
    require_agreement(expectations(plan), transport, deadline, contradiction);
  } catch (const TimeoutError& error) {
    throw TimeoutError(error.what() + std::string(", to compare shapes before the first message"));
  }
}

}  // namespace plumbline::engine
