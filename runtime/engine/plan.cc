#include "runtime/engine/plan.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "runtime/error.h"
#include "runtime/transport/collectives.h"

namespace plumbline::engine {
namespace {

std::string shapes_text(const std::vector<at::Tensor>& inputs) {
  std::string text;
  for (const at::Tensor& input : inputs) text += graph::describe(input) + (input.requires_grad() ? "* " : " ");
  return text;
}

/// What must agree between the pipes of two shapes.
std::string structure_text(const split::Pipe& pipe) {
  std::string text = std::to_string(pipe.num_stages()) + " stages;";
  for (const split::Boundary& boundary : pipe.boundaries) {
    text += " " + boundary.name + ":" + std::to_string(boundary.producer) + "->";
    for (const auto& consumer : boundary.consumers) text += std::to_string(consumer.stage) + ",";
    text += boundary.has_gradient ? "g" : "";
  }
  return text;
}

/// One line a (boundary, micro-batch): what the rank believes about it.
std::string expectations(const Plan& plan) {
  std::ostringstream out;
  for (size_t m = 0; m < plan.variants.size(); ++m)
    for (const split::Boundary& boundary : plan.pipe(static_cast<int>(m)).boundaries)
      out << boundary.producer << ' ' << m << ' ' << boundary.name << ' '
          << graph::describe(boundary.value.dtype, boundary.value.sizes) << (boundary.has_gradient ? "*" : "") << '\n';
  return out.str();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string mismatch(const std::string& mine, int my_rank, const std::string& theirs, int their_rank) {
  const std::vector<std::string> a = lines(mine), b = lines(theirs);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) continue;
    std::istringstream left(a[i]), right(b[i]);
    std::string stage, microbatch, value, shape, their_stage, their_microbatch, their_value, their_shape;
    left >> stage >> microbatch >> value >> shape;
    right >> their_stage >> their_microbatch >> their_value >> their_shape;
    if (stage == their_stage && microbatch == their_microbatch && value == their_value)
      return "stage " + stage + ", micro-batch " + microbatch + ", value '" + value + "': rank " +
             std::to_string(my_rank) + " has " + shape + ", rank " + std::to_string(their_rank) + " has " + their_shape;
    return "stage " + stage + ", micro-batch " + microbatch + ", value '" + value + "' on rank " +
           std::to_string(my_rank) + " is stage " + their_stage + ", micro-batch " + their_microbatch + ", value '" +
           their_value + "' on rank " + std::to_string(their_rank) + ": their models are cut differently";
  }
  return "rank " + std::to_string(my_rank) + " has " + std::to_string(a.size()) + " boundary values, rank " +
         std::to_string(their_rank) + " has " + std::to_string(b.size()) + ": their models are cut differently";
}

/// Every rank captured the whole model, so all must believe the same.
void compare(const std::string& mine, transport::Transport& transport, const transport::Deadline& deadline) {
  const auto all = transport::gather_bytes(transport, 0, std::as_bytes(std::span(mine)), deadline);
  std::string verdict;
  for (size_t r = 1; r < all.size() && verdict.empty(); ++r) {
    const std::string theirs(reinterpret_cast<const char*>(all[r].data()), all[r].size());
    if (theirs != mine) verdict = mismatch(mine, 0, theirs, static_cast<int>(r));
  }
  const auto answer = transport::broadcast_bytes(transport, 0, std::as_bytes(std::span(verdict)), deadline);
  if (!answer.empty())
    throw Error("shapes disagree before the first message: " +
                std::string(reinterpret_cast<const char*>(answer.data()), answer.size()));
}

}  // namespace

Plan make_plan(const PipeSource& source, bool training, const std::vector<std::vector<at::Tensor>>& microbatches) {
  Plan plan;
  std::map<std::string, int> known;
  for (const std::vector<at::Tensor>& inputs : microbatches) {
    const auto [it, inserted] = known.emplace(shapes_text(inputs), static_cast<int>(plan.pipes.size()));
    if (inserted) plan.pipes.push_back(source(training, inputs));
    plan.variants.push_back(it->second);
  }
  const split::Pipe& first = plan.pipes.front();
  for (const auto& [shapes, index] : known)
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
  const std::string mine = expectations(plan);
  try {
    compare(mine, transport, deadline);
  } catch (const TimeoutError& error) {
    throw TimeoutError(error.what() + std::string(", to compare shapes before the first message"));
  }
}

}  // namespace plumbline::engine
