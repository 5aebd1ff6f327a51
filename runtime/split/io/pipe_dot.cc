#include "runtime/split/io/pipe_dot.h"

#include <sstream>

#include "runtime/graph/io/text.h"
#include "runtime/split/io/print.h"
#include "runtime/text/dot_quoted.h"

namespace plumbline::split {
namespace {

std::string stage_name(int stage) { return dot_quoted("stage" + std::to_string(stage)); }

/// Modules that no other module of the stage contains.
std::string outermost_modules(const graph::Graph& graph) {
  constexpr int most = 12;
  std::string text;
  int32_t end = 0;
  int count = 0;
  for (const graph::ModuleCall& module : graph.module_calls) {
    if (module.name.empty() || module.begin < end || module.begin == module.end) continue;
    end = module.end;
    if (++count <= most) text += "\n" + module.name + " (" + module.type + ")";
  }
  if (count > most) text += "\n... " + std::to_string(count - most) + " more";
  return text;
}

}  // namespace

std::string to_dot(const Pipe& pipe) {
  std::ostringstream out;
  out << "digraph pipe {\nnode [shape=box];\n";
  for (int s = 0; s < pipe.num_stages(); ++s) {
    const graph::Graph& graph = pipe.stages[s].graph;
    out << "subgraph " << dot_quoted("cluster_stage" + std::to_string(s)) << " {\nlabel=\"stage " << s << "\";\n"
        << stage_name(s) << " [label=" << dot_quoted(contents_text(graph) + outermost_modules(graph)) << "];\n}\n";
  }
  for (const Boundary& boundary : pipe.boundaries)
    for (const Boundary::Consumer& consumer : boundary.consumers)
      out << stage_name(boundary.producer) << " -> " << stage_name(consumer.stage)
          << " [label=" << dot_quoted(boundary.name + "\n" + graph::value_text(boundary.value))
          << (boundary.has_gradient ? ", dir=both];\n" : "];\n");
  for (size_t i = 0; i < pipe.shared.size(); ++i) {
    const std::string node = dot_quoted("shared" + std::to_string(i));
    out << node << " [shape=note, label=" << dot_quoted(pipe.shared[i].name) << "];\n";
    for (int stage : pipe.shared[i].stages)
      out << node << " -> " << stage_name(stage) << " [style=dashed, dir=none];\n";
  }
  if (pipe.stages.empty()) return out.str() + "}\n";
  const graph::Graph& first = pipe.stages.front().graph;
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const std::string node = dot_quoted("input" + std::to_string(i));
    const graph::Value& value = first.values[first.inputs[i].value];
    out << node << " [shape=ellipse, label=" << dot_quoted(first.inputs[i].name + "\n" + graph::value_text(value))
        << "];\n"
        << node << " -> " << stage_name(0) << ";\n";
  }
  const graph::Graph& last = pipe.stages.back().graph;
  for (size_t i = 0; i < last.outputs.size(); ++i) {
    if (last.outputs[i] == graph::kNoValue) continue;
    const std::string node = dot_quoted("output" + std::to_string(i));
    const std::string label = "output " + std::to_string(i) + "\n" + graph::value_text(last.values[last.outputs[i]]);
    out << node << " [shape=ellipse, label=" << dot_quoted(label) << "];\n"
        << stage_name(pipe.num_stages() - 1) << " -> " << node << ";\n";
  }
  return out.str() + "}\n";
}

}  // namespace plumbline::split
