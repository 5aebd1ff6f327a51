#include "runtime/partition/trace/decompositions.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "runtime/graph/run/boxed_arguments.h"
#include "runtime/partition/run/bind_call.h"
#include "runtime/partition/trace/decomposition_formulas.h"
#include "runtime/partition/trace/joint_recorder.h"
#include "runtime/types/aten.h"

namespace plumbline::partition {
namespace {

std::string full_name(const JointNode& node) {
  return node.overload.empty() || node.overload == "default" ? node.op : node.op + "." + node.overload;
}

/// Records on tensors without memory.
class MetaRecorder : public JointRecorder {
 protected:
  /// LibTorch itself has no shape rule for where(); that of a sum is the same.
  void carry_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) override {
    if (op.schema().name() != "aten::where" || op.schema().arguments().size() != 3) return op.callBoxed(stack);
    const at::Tensor other = torch::jit::pop(*stack).toTensor(), self = torch::jit::pop(*stack).toTensor();
    const at::Tensor condition = torch::jit::pop(*stack).toTensor();
    stack->emplace_back(at::add(at::add(self, other), condition));
  }
};

class Decomposition {
 public:
  Decomposition(const JointGraph& graph, const std::set<std::string>& ops)
      : graph_(graph), ops_(ops), moved_(graph.nodes.size(), kNoNode), values_(graph.nodes.size()) {
    for (const JointNode& node : graph.nodes) recorder_.reserve_name(node.name);
  }

  JointGraph run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const JointNode& node = graph_.nodes[i];
      const auto index = static_cast<NodeIndex>(i);
      if (node.kind == JointKind::GetItem && taken_apart_.contains(node.args[0].node))
        take_item(index);
      else if (node.kind != JointKind::Call || !ops_.contains(node.op) || !take_apart(index))
        keep(index);
    }
    std::vector<NodeIndex> forward, backward;
    for (const NodeIndex output : graph_.forward_outputs()) forward.push_back(moved(output));
    for (const NodeIndex output : graph_.backward_outputs()) backward.push_back(moved(output));
    JointGraph result = recorder_.finish(forward, backward);
    result.symbols = graph_.symbols;
    return result;
  }

 private:
  NodeIndex moved(NodeIndex node) const { return node == kNoNode ? kNoNode : moved_[node]; }

  static std::vector<int64_t> numbers(const std::vector<Extent>& extents) {
    std::vector<int64_t> result;
    for (const Extent& extent : extents) result.push_back(extent.value);
    return result;
  }

  static c10::Storage bytes_without_memory(int64_t bytes) {
    return at::empty({bytes}, at::TensorOptions(c10::kMeta).dtype(at::kByte)).storage();
  }

  c10::Storage storage_of(const JointResult& result) {
    if (result.storage < 0) return bytes_without_memory(result.bytes);
    const auto [it, inserted] = storages_.try_emplace(result.storage);
    if (inserted) it->second = bytes_without_memory(graph_.storage_bytes[result.storage]);
    return it->second;
  }

  /// A tensor without memory as `result` describes it.
  at::Tensor without_memory(const JointResult& result) {
    if (result.kind != JointResult::Kind::Tensor) return {};
    at::Tensor tensor = at::empty({0}, at::TensorOptions(c10::kMeta).dtype(types::to_aten(result.dtype)));
    return tensor.set_(storage_of(result), result.offset.value, numbers(result.shape), numbers(result.strides));
  }

  void keep(NodeIndex index) {
    JointNode node = graph_.nodes[index];
    map_inputs(node, [&](NodeIndex input) { return moved(input); });
    std::vector<at::Tensor>& tensors = values_[index];
    if (node.kind == JointKind::GetItem)
      tensors = {values_[graph_.nodes[index].args[0].node].at(node.args[1].integer)};
    else if (node.out.kind == JointResult::Kind::Tuple)
      for (const JointResult& item : node.out.items) tensors.push_back(without_memory(item));
    else
      tensors = {without_memory(node.out)};
    moved_[index] = recorder_.add_node(std::move(node), tensors);
  }

  void take_item(NodeIndex index) {
    const JointNode& node = graph_.nodes[index];
    values_[index] = {values_[node.args[0].node].at(node.args[1].integer)};
    moved_[index] = recorder_.node_of(values_[index][0]);
  }

  bool take_apart(NodeIndex index) {
    const JointNode& node = graph_.nodes[index];
    const auto formula = decomposition_formulas().find(full_name(node));
    if (formula == decomposition_formulas().end()) return false;
    const size_t before = recorder_.nodes().size();
    recorder_.set_mark(node.mark);
    std::vector<at::Tensor> results;
    {
      const torch::jit::Stack arguments = graph::boxed_arguments(
          bind_call(graph_, node), [&](NodeIndex operand) -> c10::IValue { return values_[operand].at(0); });
      const capture::InterposerScope recording(recorder_);
      results = formula->second(arguments);
    }
    if (!fits(node, results)) return false;  // what was recorded is dead
    const types::Device device = node.out.items.empty() ? node.out.device : node.out.items[0].device;
    for (size_t i = before; i < recorder_.nodes().size(); ++i) dress(recorder_.nodes()[i], node, device);
    for (size_t k = 0; k < results.size(); ++k) {
      const JointResult& was = node.out.kind == JointResult::Kind::Tuple ? node.out.items[k] : node.out;
      if (results[k].defined() && was.storage >= 0) storages_.insert_or_assign(was.storage, results[k].storage());
    }
    values_[index] = std::move(results);
    if (node.out.kind == JointResult::Kind::Tuple)
      taken_apart_.insert(index);
    else
      moved_[index] = recorder_.node_of(values_[index][0]);
    return true;
  }

  /// Whether the parts give what the call gave. A result that the call does not have (an undefined gradient) may be
  /// there, and a result that is never read may be missing.
  bool fits(const JointNode& node, const std::vector<at::Tensor>& results) const {
    if (results.empty()) return false;
    const std::vector<JointResult> expected =
        node.out.kind == JointResult::Kind::Tuple ? node.out.items : std::vector{node.out};
    if (results.size() != expected.size()) return false;
    for (size_t k = 0; k < results.size(); ++k) {
      if (expected[k].kind != JointResult::Kind::Tensor) continue;
      const at::Tensor& is = results[k];
      if (!is.defined() || is.scalar_type() != types::to_aten(expected[k].dtype) ||
          is.sizes() != numbers(expected[k].shape))
        return false;
      const std::vector<int64_t> strides = numbers(expected[k].strides);
      for (int64_t d = 0; d < is.dim(); ++d)
        if (is.size(d) > 1 && is.stride(d) != strides[d]) return false;
    }
    return true;
  }

  /// Gives a part what belongs to the whole.
  static void dress(JointNode& part, const JointNode& whole, types::Device device) {
    const auto place = [&](const auto& self, JointResult& result) -> void {
      result.device = device;
      for (JointResult& item : result.items) self(self, item);
    };
    place(place, part.out);
    for (auto& [name, argument] : part.kwargs)
      if (argument.kind == JointArgument::Kind::Device) argument.device = device;
    part.no_grad = whole.no_grad;
    part.recompute = whole.recompute;
    part.region = whole.region;
    part.memory_budget = whole.memory_budget;
  }

  const JointGraph& graph_;
  const std::set<std::string>& ops_;
  MetaRecorder recorder_;
  std::vector<NodeIndex> moved_;
  std::vector<std::vector<at::Tensor>> values_;         ///< by node: its tensor, or those of its tuple
  std::unordered_map<int32_t, c10::Storage> storages_;  ///< by number in `graph_`: equal numbers share memory
  std::unordered_set<NodeIndex> taken_apart_;           ///< those of several results
};

}  // namespace

const std::set<std::string>& decomposable() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const auto& [name, formula] : decomposition_formulas()) all.insert(name.substr(0, name.find('.')));
    return all;
  }();
  return names;
}

JointGraph decompose(const JointGraph& graph, const std::set<std::string>& ops) {
  return Decomposition(graph, ops).run();
}

}  // namespace plumbline::partition
