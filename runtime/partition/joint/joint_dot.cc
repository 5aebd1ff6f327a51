#include "runtime/partition/joint/joint_dot.h"

#include <sstream>

#include "runtime/partition/joint/result_text.h"
#include "runtime/text/dot_quoted.h"

namespace plumbline::partition {
namespace {

class Picture {
 public:
  explicit Picture(const Partition& partition)
      : graph_(partition.graph),
        saved_(marked(partition.saved)),
        forward_(marked(partition.forward.ops)),
        backward_(marked(partition.backward.ops)) {
    for (const NodeIndex node : partition.saved_symbols) saved_[node] = 1;
  }

  std::string joint() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) draw(static_cast<NodeIndex>(i), graph_.nodes[i].is_input(), true);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) draw_inputs(static_cast<NodeIndex>(i));
    draw_outputs("forward", graph_.forward_outputs());
    draw_outputs("backward", graph_.backward_outputs());
    return finish("joint");
  }

  std::string part(const std::string& name, const Subgraph& subgraph) {
    for (const NodeIndex node : subgraph.inputs) draw(node, true, false);
    for (const NodeIndex node : subgraph.ops) draw(node, false, false);
    for (const NodeIndex node : subgraph.ops) draw_inputs(node);
    draw_outputs(name, subgraph.outputs);
    return finish(name);
  }

 private:
  std::vector<char> marked(const std::vector<NodeIndex>& nodes) const {
    std::vector<char> marks(graph_.nodes.size(), 0);
    for (const NodeIndex node : nodes) marks[node] = 1;
    return marks;
  }

  static std::string id(NodeIndex node) { return "n" + std::to_string(node); }

  void draw(NodeIndex i, bool input, bool joint) {
    const JointNode& node = graph_.nodes[i];
    std::string label = node.name;
    if (node.kind == JointKind::Call) label += "\n" + node.op;
    label += "\n" + result_text(node.out);
    if (node.out.kind == JointResult::Kind::Tensor) label += "\n" + std::to_string(node.out.bytes) + " bytes";
    const bool both = forward_[i] && backward_[i];
    const bool neither = !node.is_input() && !forward_[i] && !backward_[i];
    const char* fill = saved_[i] ? "gold" : both ? "lightblue" : joint && backward_[i] ? "lightgrey" : "white";
    out_ << id(i) << " [shape="
         << (input                             ? "ellipse"
             : node.kind == JointKind::GetAttr ? "note"
                                               : "box")
         << ", style=" << dot_quoted(neither ? "filled,dotted" : "filled") << ", fillcolor=" << fill;
    if (both) out_ << ", peripheries=2";
    out_ << ", label=" << dot_quoted(label) << "];\n";
  }

  void draw_inputs(NodeIndex i) {
    for_each_input(graph_.nodes[i], [&](NodeIndex input) { out_ << id(input) << " -> " << id(i) << ";\n"; });
  }

  void draw_outputs(const std::string& part, std::span<const NodeIndex> outputs) {
    const std::string name = part + "_outputs";
    out_ << name << " [shape=ellipse, label=" << dot_quoted(part + " outputs") << "];\n";
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] != kNoNode) out_ << id(outputs[i]) << " -> " << name << " [label=\"" << i << "\"];\n";
  }

  std::string finish(const std::string& name) const {
    return "digraph " + name + " {\nlabel=" + dot_quoted(name + ": gold is saved, blue runs in forward and backward") +
           ";\n" + out_.str() + "}\n";
  }

  const JointGraph& graph_;
  std::vector<char> saved_, forward_, backward_;
  std::ostringstream out_;
};

}  // namespace

std::string to_dot(const Partition& partition, PartitionPart part) {
  Picture picture(partition);
  switch (part) {
    case PartitionPart::Forward:
      return picture.part("forward", partition.forward);
    case PartitionPart::Backward:
      return picture.part("backward", partition.backward);
    case PartitionPart::Joint:
      break;
  }
  return picture.joint();
}

}  // namespace plumbline::partition
