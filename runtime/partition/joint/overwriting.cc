#include "runtime/partition/joint/overwriting.h"

namespace plumbline::partition {
namespace {

bool same_form(const JointResult& a, const JointResult& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.device == b.device && a.shape == b.shape && a.strides == b.strides;
}

}  // namespace

int overwritten_argument(const JointGraph& graph, const JointNode& node) {
  constexpr int kArgument = 0;  // the gradient, of both
  if (node.kind != JointKind::Call || node.overload != "default" ||
      (node.op != "aten::_softmax_backward_data" && node.op != "aten::_log_softmax_backward_data"))
    return -1;
  if (node.args.size() < 2 || node.args[0].kind != JointArgument::Kind::Node ||
      node.args[1].kind != JointArgument::Kind::Node || node.out.device.kind != types::Device::Kind::Cpu)
    return -1;
  const JointNode& gradient = graph.nodes[node.args[0].node];
  const int32_t storage = gradient.out.storage;
  const bool has_room = !gradient.is_input() && gradient.kind != JointKind::GetAttr &&
                        same_form(gradient.out, node.out) && storage >= 0 &&
                        graph.storage_bytes[storage] == node.out.bytes;
  return has_room && graph.nodes[node.args[1].node].out.storage != storage ? kArgument : -1;
}

}  // namespace plumbline::partition
