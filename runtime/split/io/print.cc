#include "runtime/split/io/print.h"

#include <algorithm>
#include <ranges>
#include <sstream>

#include "runtime/graph/io/text.h"
#include "runtime/text/counted.h"
#include "runtime/text/join.h"

namespace plumbline::split {
namespace {

int64_t elements(const graph::Graph& graph, const graph::Attribute& attribute) {
  if (attribute.tensor.defined()) return attribute.tensor.numel();
  if (attribute.value == graph::kNoValue) return 0;
  int64_t count = 1;
  for (int64_t size : graph.values[attribute.value].sizes) count *= size;
  return count;
}

std::string boundary_text(const Boundary& boundary) {
  std::string text = "boundary \"" + boundary.name + "\": " + graph::value_text(boundary.value) + ", output " +
                     std::to_string(boundary.output) + " of stage " + std::to_string(boundary.producer) + " -> ";
  text += join(boundary.consumers | std::views::transform([](const Boundary::Consumer& consumer) {
                 return "input " + std::to_string(consumer.input) + " of stage " + std::to_string(consumer.stage);
               }));
  return text + (boundary.has_gradient ? ", gradient returns\n" : "\n");
}

}  // namespace

std::string contents_text(const graph::Graph& graph) {
  int64_t parameters = 0, buffers = 0, size = 0;
  for (const graph::Attribute& attribute : graph.attributes) {
    if (attribute.kind == graph::AttributeKind::Buffer) ++buffers;
    if (attribute.kind != graph::AttributeKind::Parameter) continue;
    ++parameters;
    size += elements(graph, attribute);
  }
  const auto calls = std::ranges::count_if(graph.nodes, [](const graph::Node& node) { return !node.is_split(); });
  return counted(calls, "call") + ", " + counted(parameters, "parameter") + " (" + counted(size, "element") + "), " +
         counted(buffers, "buffer");
}

std::string to_text(const Pipe& pipe) {
  std::ostringstream out;
  out << "pipe of " << counted(pipe.num_stages(), "stage") << '\n';
  for (int s = 0; s < pipe.num_stages(); ++s)
    out << "stage " << s << ": " << contents_text(pipe.stages[s].graph) << '\n';
  for (const Boundary& boundary : pipe.boundaries) out << boundary_text(boundary);
  for (const SharedParameter& shared : pipe.shared)
    out << "shared parameter \"" << shared.name << "\": stages "
        << join(shared.stages | std::views::transform([](int stage) { return std::to_string(stage); })) << '\n';
  for (const LocalLoss& loss : pipe.local_losses)
    out << "local loss: output " << loss.model_output << " of the model stays as output " << loss.output << " of stage "
        << loss.stage << '\n';
  for (int s = 0; s < pipe.num_stages(); ++s) out << "\nstage " << s << '\n' << to_text(pipe.stages[s].graph);
  return out.str();
}

}  // namespace plumbline::split
