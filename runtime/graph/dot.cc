#include "runtime/graph/dot.h"

#include <algorithm>
#include <sstream>

#include "runtime/dot_quoted.h"
#include "runtime/graph/text.h"

namespace plumbline::graph {
namespace {

/// Writes the statements of one graph; a branch is written into the same picture, its names opened by `prefix`.
class Picture {
 public:
  Picture(const Graph& graph, std::string prefix, std::ostringstream& out)
      : graph_(graph), prefix_(std::move(prefix)), out_(out), origin_(graph.values.size()) {}

  void draw() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const GraphInput& input = graph_.inputs[i];
      leaf("input" + std::to_string(i), input.name, input.value, "ellipse");
    }
    for (size_t i = 0; i < graph_.attributes.size(); ++i) {
      const Attribute& attribute = graph_.attributes[i];
      if (attribute.value != kNoValue) leaf("attribute" + std::to_string(i), attribute.name, attribute.value, "note");
    }
    draw_calls();
    out_ << name("outputs") << " [shape=ellipse, label=\"outputs\"];\n";
    for (size_t i = 0; i < graph_.outputs.size(); ++i)
      if (graph_.outputs[i] != kNoValue) edge(graph_.outputs[i], "outputs", std::to_string(i));
  }

  std::string name(const std::string& local) const { return dot_quoted(prefix_ + local); }

 private:
  void leaf(const std::string& local, const std::string& label, ValueId v, const char* shape) {
    out_ << name(local) << " [shape=" << shape << ", label=" << dot_quoted(label + "\n" + value_text(graph_.values[v]))
         << "];\n";
    origin_[v] = local;
  }

  void edge(ValueId from, const std::string& to, const std::string& label = "") {
    out_ << name(origin_[from]) << " -> " << name(to);
    if (!label.empty()) out_ << " [label=" << dot_quoted(label) << "]";
    out_ << ";\n";
  }

  /// The calls in their modules' frames, then the edges: a frame holds all nodes that are named within it.
  void draw_calls() {
    std::vector<int32_t> open;  // the ends of the frames around the current call
    auto next = graph_.module_calls.begin();
    const auto count = static_cast<int32_t>(graph_.nodes.size());
    for (int32_t i = 0; i < count; ++i) {
      for (; next != graph_.module_calls.end() && next->begin <= i; ++next) {
        if (next->begin < i || next->end <= i) continue;
        const auto number = std::to_string(next - graph_.module_calls.begin());
        const std::string label = next->name.empty() ? next->type : next->name + " (" + next->type + ")";
        out_ << "subgraph " << dot_quoted("cluster_" + prefix_ + "module" + number) << " {\nlabel=" << dot_quoted(label)
             << ";\n";
        // A module that returns after the one that called it is drawn as far as its frame goes.
        open.push_back(open.empty() ? next->end : std::min(next->end, open.back()));
      }
      draw_call(i);
      for (; !open.empty() && open.back() == i + 1; open.pop_back()) out_ << "}\n";
    }
    for (int32_t i = 0; i < count; ++i) for_each_use(graph_.nodes[i], [&](ValueId v) { edge(v, call(i)); });
  }

  static std::string call(size_t i) { return "call" + std::to_string(i); }

  void draw_call(size_t i) {
    const Node& node = graph_.nodes[i];
    if (node.is_split()) {
      out_ << name(call(i)) << " [shape=plaintext, label=\"pipe_split\"];\n";
      return;
    }
    std::string label = c10::toString(node.op->operator_name());
    for_each_definition(node, [&](ValueId v) {
      label += "\n" + value_text(graph_.values[v]);
      origin_[v] = call(i);
    });
    out_ << name(call(i)) << " [shape=box, label=" << dot_quoted(label) << "];\n";
    for (size_t b = 0; b < node.branches.size(); ++b) {
      const std::string word = b == 0 ? "then" : "else";
      Picture branch(*node.branches[b], prefix_ + call(i) + "_" + word + "_", out_);
      out_ << "subgraph " << dot_quoted("cluster_" + prefix_ + call(i) + word) << " {\nlabel=" << dot_quoted(word)
           << ";\n";
      branch.draw();
      out_ << "}\n" << name(call(i)) << " -> " << branch.name("outputs") << " [style=dashed, dir=none];\n";
    }
  }

  const Graph& graph_;
  std::string prefix_;
  std::ostringstream& out_;
  std::vector<std::string> origin_;  // by value: which node of the picture makes it
};

}  // namespace

std::string to_dot(const Graph& graph) {
  std::ostringstream out;
  out << "digraph plumbline {\n";
  Picture(graph, "", out).draw();
  out << "}\n";
  return out.str();
}

}  // namespace plumbline::graph
