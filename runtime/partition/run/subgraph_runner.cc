// SubgraphRunner: a part of a joint graph as a list of bound calls on one reused stack.
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/partition/joint/effects.h"
#include "runtime/partition/joint/overwriting.h"
#include "runtime/partition/run/bind_call.h"
#include "runtime/partition/run/random_replay.h"
#include "runtime/partition/run/run.h"

namespace plumbline::partition {
namespace {

using Slot = int32_t;
constexpr Slot kNoSlot = -1;

struct Fill {
  uint32_t position;
  Slot slot;
  bool last_use;  // moved into the call
};

struct ListFill {
  uint32_t position;
  bool optional;
  std::vector<Slot> slots;
};

/// Where a result of a call goes.
struct Returned {
  int32_t position;  // among what the call returns
  int32_t item;      // in a returned list; -1: no list
  Slot slot;
};

struct Instruction {
  c10::OperatorHandle op;
  std::vector<c10::IValue> arguments;
  std::vector<Fill> fills;
  std::vector<ListFill> list_fills;
  std::vector<Returned> results;
  std::vector<Slot> released;  // dead after this one, and not moved into it
  int32_t state = -1;          // among the random states
  c10::Device device = c10::kCPU;
  bool records_gradients = false;  // whether gradients were being recorded when it was traced
  int overwrites = -1;             // which argument the result may go into, once that is moved into the call
  std::optional<c10::OperatorHandle> overwriting = {};
};

bool records_gradients(const JointNode& node) { return !traced_in_backward(node) && !node.no_grad; }

/// Whether the argument is nobody's but the call's. (A gradient may still be in the caller's hands.)
bool is_sole_owner(const c10::IValue& argument) {
  const at::Tensor& tensor = argument.toTensor();
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1 && tensor.is_contiguous();
}

/// The device whose generator a random call draws from.
c10::Device device_of(const JointNode& node) {
  const JointResult* result = &node.out;
  while (result->kind == JointResult::Kind::Tuple && !result->items.empty()) result = &result->items.front();
  return c10::Device(result->device);
}

bool is_number(const JointNode& node) { return node.out.kind == JointResult::Kind::Scalar; }

/// By node: whether it is made from a tangent.
std::vector<char> reads_tangents(const JointGraph& graph) {
  std::vector<char> reads(graph.nodes.size(), 0);
  for (size_t i = 0; i < reads.size(); ++i) {
    reads[i] = graph.nodes[i].kind == JointKind::Tangent;
    for_each_input(graph.nodes[i], [&](NodeIndex input) { reads[i] = reads[i] || reads[input]; });
  }
  return reads;
}

}  // namespace

struct SubgraphRunner::Impl {
  Impl(const JointGraph& graph, const Subgraph& part, const std::map<std::string, at::Tensor>& constants,
       std::span<const NodeIndex> replayed);

  void execute(Instruction& in, std::vector<at::Tensor>& states, bool record);
  void call(const Instruction& in);
  void fill(const Instruction& in);
  void store(const Instruction& in);
  void clear();

  std::vector<Instruction> instructions;
  std::vector<Slot> inputs, outputs;  // kNoSlot: a number, or None
  std::vector<char> moves_out;        // by output: nobody else reads the slot
  std::vector<c10::IValue> slots;
  std::vector<char> is_constant;   // by slot: survives the run
  std::vector<std::string> names;  // by instruction, for errors
  torch::jit::Stack stack;
  size_t state_count = 0;

 private:
  Slot slot_of(NodeIndex node) const {
    const Slot slot = slot_of_[node];
    if (slot == kNoSlot)
      throw InputError("node '" + graph_->nodes[node].name + "' is used in a part of the graph that does not make it");
    return slot;
  }
  Slot new_slot(NodeIndex node) {
    slots.emplace_back();
    is_constant.push_back(0);
    return slot_of_[node] = static_cast<Slot>(slots.size()) - 1;
  }
  void add_constant(NodeIndex node, const std::map<std::string, at::Tensor>& constants);
  void add_call(NodeIndex node, int32_t state);
  void add_getitem(NodeIndex node);
  void find_last_uses();

  // While it is made.
  const JointGraph* graph_;
  std::vector<Slot> slot_of_;         // by node
  std::vector<int32_t> maker_;        // by node: the instruction whose results it stands for
  std::vector<int32_t> returned_at_;  // by node: which of the returned values a getitem of a getitem begins at
  std::vector<char> reads_tangents_;  // by node
};

SubgraphRunner::Impl::Impl(const JointGraph& graph, const Subgraph& part,
                           const std::map<std::string, at::Tensor>& constants, std::span<const NodeIndex> replayed)
    : state_count(replayed.size()),
      graph_(&graph),
      slot_of_(graph.nodes.size(), kNoSlot),
      maker_(graph.nodes.size(), -1),
      returned_at_(graph.nodes.size(), -1),
      reads_tangents_(reads_tangents(graph)) {
  std::vector<int32_t> state_of(graph.nodes.size(), -1);
  for (size_t i = 0; i < replayed.size(); ++i) state_of[replayed[i]] = static_cast<int32_t>(i);
  for (const NodeIndex input : part.inputs) inputs.push_back(is_number(graph.nodes[input]) ? kNoSlot : new_slot(input));
  for (const NodeIndex node : part.ops) {
    if (is_number(graph.nodes[node])) continue;  // stands for its hint
    switch (graph.nodes[node].kind) {
      case JointKind::Call:
        add_call(node, state_of[node]);
        break;
      case JointKind::GetItem:
        add_getitem(node);
        break;
      case JointKind::GetAttr:
        add_constant(node, constants);
        break;
      default:
        throw InputError("node '" + graph.nodes[node].name + "' is an input, and stands among the calls of a part");
    }
  }
  for (const NodeIndex output : part.outputs)
    outputs.push_back(output == kNoNode || is_number(graph.nodes[output]) ? kNoSlot : slot_of(output));
  find_last_uses();
  stack.reserve(64);
  graph_ = nullptr;
  slot_of_ = {};
  maker_ = returned_at_ = {};
  reads_tangents_ = {};
}

void SubgraphRunner::Impl::add_constant(NodeIndex index, const std::map<std::string, at::Tensor>& constants) {
  const JointNode& node = graph_->nodes[index];
  const auto constant = constants.find(node.attribute);
  if (constant == constants.end())
    throw InputError("node '" + node.name + "': the constant '" + node.attribute + "' is not there");
  const Slot slot = new_slot(index);
  slots[slot] = constant->second;
  is_constant[slot] = 1;
}

void SubgraphRunner::Impl::add_call(NodeIndex index, int32_t state) {
  const JointNode& node = graph_->nodes[index];
  BoundCall call = bind_call(*graph_, node, /*any_layout=*/reads_tangents_[index]);
  Instruction in{call.op, std::move(call.arguments), {}, {}, {}, {}, state, c10::kCPU, records_gradients(node)};
  if (state >= 0) in.device = device_of(node);
  in.overwrites = overwritten_argument(*graph_, node);
  if (in.overwrites >= 0) in.overwriting = c10::Dispatcher::singleton().findSchema({node.op, "out"});
  for (const BoundCall::Fill& fill : call.fills) in.fills.push_back({fill.position, slot_of(fill.node), false});
  for (const BoundCall::ListFill& fill : call.list_fills) {
    ListFill bound{fill.position, fill.optional, {}};
    for (const NodeIndex item : fill.nodes) bound.slots.push_back(item == kNoNode ? kNoSlot : slot_of(item));
    in.list_fills.push_back(std::move(bound));
  }
  maker_[index] = static_cast<int32_t>(instructions.size());
  if (!node.multi_output && node.out.kind != JointResult::Kind::Tuple && !in.op.schema().returns().empty())
    in.results.push_back({0, -1, new_slot(index)});
  names.push_back(node.name + " (" + node.op + ")");
  instructions.push_back(std::move(in));
}

/// The call writes the item where the getitem would put it.
void SubgraphRunner::Impl::add_getitem(NodeIndex index) {
  const JointNode& node = graph_->nodes[index];
  const auto refuse = [&](const std::string& reason) {
    throw InputError("node '" + node.name + "' (getitem) cannot be executed: " + reason);
  };
  if (node.args.size() != 2 || node.args[0].kind != JointArgument::Kind::Node) refuse("it takes no item of a node");
  const NodeIndex from = node.args[0].node;
  const int32_t maker = maker_[from];
  if (maker < 0) refuse("the call before it is in another part of the graph");
  const auto item = static_cast<int32_t>(node.args[1].integer);
  const auto& returns = instructions[maker].op.schema().returns();
  const bool of_list = returned_at_[from] >= 0 || returns.size() == 1;
  const int32_t position = !of_list ? item : std::max(returned_at_[from], 0);
  if (position < 0 || position >= static_cast<int32_t>(returns.size())) refuse("there is no such result");
  if (!of_list && returns[position].type()->kind() == c10::TypeKind::ListType) {
    maker_[index] = maker;
    returned_at_[index] = position;
    return;
  }
  instructions[maker].results.push_back({position, of_list ? item : -1, new_slot(index)});
}

void SubgraphRunner::Impl::find_last_uses() {
  constexpr int32_t kKept = INT32_MAX;
  std::vector<int32_t> last(slots.size(), -1), uses(slots.size(), 0);
  for (Slot slot = 0; slot < static_cast<Slot>(slots.size()); ++slot)
    if (is_constant[slot]) last[slot] = kKept;
  for (const Slot slot : outputs) {
    if (slot == kNoSlot) continue;
    last[slot] = kKept;
    ++uses[slot];
  }
  moves_out.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    moves_out[i] = outputs[i] != kNoSlot && uses[outputs[i]] == 1 && !is_constant[outputs[i]];
  std::fill(uses.begin(), uses.end(), 0);
  for (int32_t i = static_cast<int32_t>(instructions.size()) - 1; i >= 0; --i) {
    Instruction& in = instructions[i];
    std::vector<Slot> ending;
    const auto use = [&](Slot slot) {
      if (slot == kNoSlot) return;
      if (last[slot] < 0) {
        last[slot] = i;
        ending.push_back(slot);
      }
      ++uses[slot];
    };
    for (const Fill& fill : in.fills) use(fill.slot);
    for (const ListFill& fill : in.list_fills)
      for (const Slot slot : fill.slots) use(slot);
    for (const Slot slot : ending) {
      const auto fill = std::find_if(in.fills.begin(), in.fills.end(), [&](const Fill& f) { return f.slot == slot; });
      if (uses[slot] == 1 && fill != in.fills.end())
        fill->last_use = true;
      else
        in.released.push_back(slot);
    }
  }
  // What nobody reads needs no place.
  for (Slot& slot : inputs)
    if (slot != kNoSlot && last[slot] < 0) slot = kNoSlot;
  for (Instruction& in : instructions)
    std::erase_if(in.results, [&](const Returned& result) { return last[result.slot] < 0; });
}

void SubgraphRunner::Impl::fill(const Instruction& in) {
  stack.clear();
  stack.insert(stack.end(), in.arguments.begin(), in.arguments.end());
  for (const ListFill& fill : in.list_fills) {
    if (fill.optional) {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(fill.slots.size());
      for (const Slot slot : fill.slots) {
        if (slot == kNoSlot)
          list.push_back(std::nullopt);
        else
          list.push_back(slots[slot].toTensor());
      }
      stack[fill.position] = std::move(list);
    } else {
      c10::List<at::Tensor> list;
      list.reserve(fill.slots.size());
      for (const Slot slot : fill.slots) list.push_back(slots[slot].toTensor());
      stack[fill.position] = std::move(list);
    }
  }
  for (const Fill& fill : in.fills) {
    if (fill.last_use)
      stack[fill.position] = std::move(slots[fill.slot]);
    else
      stack[fill.position] = slots[fill.slot];
  }
}

void SubgraphRunner::Impl::store(const Instruction& in) {
  for (const Returned& result : in.results) {
    c10::IValue& returned = stack[result.position];
    if (result.item < 0)
      slots[result.slot] = std::move(returned);
    else
      slots[result.slot] = returned.toListRef().at(result.item);
  }
  stack.clear();
}

void SubgraphRunner::Impl::call(const Instruction& in) {
  if (!in.overwriting || !is_sole_owner(stack[in.overwrites])) return in.op.callBoxed(&stack);
  stack.emplace_back(stack[in.overwrites].toTensor());
  in.overwriting->callBoxed(&stack);
}

void SubgraphRunner::Impl::execute(Instruction& in, std::vector<at::Tensor>& states, bool record) {
  fill(in);
  if (in.state < 0) {
    call(in);
  } else if (record) {
    states[in.state] = recorded_random_state(in.device);
    in.op.callBoxed(&stack);
  } else {
    const RandomReplay replay(in.device, states[in.state]);
    in.op.callBoxed(&stack);
  }
  store(in);
  for (const Slot slot : in.released) slots[slot] = c10::IValue();
}

void SubgraphRunner::Impl::clear() {
  for (size_t slot = 0; slot < slots.size(); ++slot)
    if (!is_constant[slot]) slots[slot] = c10::IValue();
  stack.clear();
}

SubgraphRunner::SubgraphRunner(const JointGraph& graph, const Subgraph& part,
                               const std::map<std::string, at::Tensor>& constants, std::span<const NodeIndex> replayed)
    : impl_(std::make_unique<Impl>(graph, part, constants, replayed)) {}
SubgraphRunner::~SubgraphRunner() = default;
SubgraphRunner::SubgraphRunner(SubgraphRunner&&) noexcept = default;
SubgraphRunner& SubgraphRunner::operator=(SubgraphRunner&&) noexcept = default;

void SubgraphRunner::run(std::vector<at::Tensor> inputs, std::vector<at::Tensor>& outputs,
                         std::vector<at::Tensor>& states, bool record) {
  Impl& self = *impl_;
  PLUMBLINE_CHECK(
      inputs.size() == self.inputs.size(),
      std::to_string(inputs.size()) + " inputs for a part that takes " + std::to_string(self.inputs.size()));
  if (record) states.resize(self.state_count);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (self.inputs[i] != kNoSlot) self.slots[self.inputs[i]] = std::move(inputs[i]);
  inputs.clear();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  // Some kernels look at the grad mode (that of an LSTM keeps a workspace). The backward runs what it repeats of the
  // forward as the forward did.
  const bool may_record = !record || c10::GradMode::is_enabled();
  const c10::AutoGradMode grad_mode(c10::GradMode::is_enabled());  // to be put back
  for (size_t i = 0; i < self.instructions.size(); ++i) {
    const bool wanted = may_record && self.instructions[i].records_gradients;
    if (wanted != c10::GradMode::is_enabled()) c10::GradMode::set_enabled(wanted);
    try {
      self.execute(self.instructions[i], states, record);
    } catch (const std::exception& error) {
      self.clear();
      throw Error("running " + self.names[i] + ": " + graph::error_text(error));
    }
  }
  outputs.resize(self.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (self.outputs[i] == kNoSlot)
      outputs[i] = at::Tensor();
    else if (self.moves_out[i])
      outputs[i] = std::move(self.slots[self.outputs[i]]).toTensor();
    else
      outputs[i] = self.slots[self.outputs[i]].toTensor();
  }
  for (const Slot slot : self.outputs)
    if (slot != kNoSlot && !self.is_constant[slot]) self.slots[slot] = c10::IValue();
}

}  // namespace plumbline::partition
