// Shared by the tests of joint traces: modules written as lambdas, and the bitwise comparison of a trace with plain
// autograd on the module.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/capture/capture.h"
#include "runtime/graph/run/program.h"
#include "runtime/partition/testing/joint_run_testing.h"
#include "runtime/partition/trace/trace.h"
#include "runtime/types/aten.h"

namespace plumbline::partition {

using Tensors = std::vector<at::Tensor>;

/// A module whose forward is a lambda over its parameters and buffers by name.
struct TracedModule : torch::nn::Module {
  at::Tensor parameter(const std::string& name, at::IntArrayRef shape) {
    return register_parameter(name, at::randn(shape) / 4);
  }
  capture::ForwardFunction body;
};

inline std::shared_ptr<TracedModule> module_of(const std::function<void(TracedModule&)>& build) {
  at::manual_seed(7);
  auto model = std::make_shared<TracedModule>();
  build(*model);
  return model;
}

inline graph::Graph capture_of(const torch::nn::Module& module, const capture::ForwardFunction& forward,
                               const Tensors& inputs) {
  std::vector<capture::NamedTensor> named;
  for (size_t i = 0; i < inputs.size(); ++i) named.push_back({"x" + std::to_string(i), inputs[i]});
  return capture::capture(module, forward, named);
}

/// The graph with native_dropout, as AOTAutograd records it, in place of dropout, which a trace takes as the bernoulli,
/// div and mul of which it consists on the CPU. The mask is the same; the scaled values may differ in the last bit.
inline graph::Graph with_native_dropout(graph::Graph graph) {
  const c10::OperatorHandle native = c10::Dispatcher::singleton().findSchemaOrThrow("aten::native_dropout", "");
  for (graph::Node& node : graph.nodes) {
    if (node.is_split() || node.op->schema().name() != "aten::dropout") continue;
    const c10::IValue& p = node.arguments[1].constant;
    const c10::IValue& train = node.arguments[2].constant;
    if (!train.isBool() || !train.toBool() || !p.isDouble() || p.toDouble() == 0.0) continue;
    const graph::ValueId result = node.results[0].values[0];
    graph::Value mask = graph.values[result];
    mask.dtype = at::kBool;
    mask.requires_grad = false;
    mask.storage = -1;
    node.op = native;
    node.results.push_back({false, {graph.add_value(std::move(mask))}});
  }
  return graph;
}

inline bool bitwise_equal(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.numel() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// The results of plain autograd on the module: outputs, buffers after the forward, a gradient for each primal.
struct Eager {
  Tensors outputs, tangents, gradients;
  std::map<std::string, at::Tensor> buffers;
};

inline Tensors clones(const Tensors& tensors) {
  Tensors out;
  for (const at::Tensor& t : tensors) out.push_back(t.detach().clone().set_requires_grad(t.requires_grad()));
  return out;
}

inline Eager run_eagerly(torch::nn::Module& module, const capture::ForwardFunction& forward, const Tensors& inputs,
                         const graph::Graph& graph, const JointTrace& trace) {
  Eager eager;
  const Tensors leaves = clones(inputs);
  std::map<std::string, at::Tensor> before;
  for (const auto& buffer : module.named_buffers()) before[buffer.key()] = buffer.value().clone();
  at::manual_seed(11);
  eager.outputs = forward(leaves);
  at::manual_seed(12);
  Tensors roots, wanted;
  std::vector<int> differentiable;
  for (size_t i = 0; i < eager.outputs.size(); ++i) {
    if (!eager.outputs[i].defined() || !eager.outputs[i].requires_grad()) continue;
    differentiable.push_back(static_cast<int>(i));
    roots.push_back(eager.outputs[i]);
    eager.tangents.push_back(at::randn_like(roots.back()));
  }
  EXPECT_EQ(trace.tangent_of, differentiable);
  for (const PrimalSource& primal : trace.primals) {
    const at::Tensor& tensor =
        primal.kind == PrimalSource::Kind::Input ? leaves[primal.index] : graph.attributes[primal.index].tensor;
    if (tensor.requires_grad()) wanted.push_back(tensor);
  }
  Tensors found(wanted.size());
  if (!roots.empty() && !wanted.empty())
    found = torch::autograd::grad(roots, wanted, eager.tangents, false, false, true);
  size_t next = 0;
  for (const PrimalSource& primal : trace.primals) {
    const at::Tensor& tensor =
        primal.kind == PrimalSource::Kind::Input ? leaves[primal.index] : graph.attributes[primal.index].tensor;
    eager.gradients.push_back(tensor.requires_grad() ? found[next++] : at::Tensor());
  }
  const c10::NoGradGuard no_grad;
  for (auto& buffer : module.named_buffers()) {
    eager.buffers[buffer.key()] = buffer.value().clone();
    buffer.value().copy_(before[buffer.key()]);
  }
  return eager;
}

/// Checks the invariants of every joint graph; failures name the node.
inline void expect_well_formed(const JointTrace& trace) {
  const JointGraph& graph = trace.graph;
  verify(graph);
  std::set<std::string> names;
  bool inputs = true;
  size_t primals = 0, tangents = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const JointNode& node = graph.nodes[i];
    EXPECT_TRUE(names.insert(node.name).second) << node.name << " occurs twice";
    inputs = inputs && node.is_input();
    EXPECT_EQ(inputs, node.is_input()) << node.name;
    primals += node.kind == JointKind::Primal;
    tangents += node.kind == JointKind::Tangent;
    for_each_input(node, [&](NodeIndex input) { EXPECT_TRUE(input >= 0 && input < static_cast<int>(i)) << node.name; });
    EXPECT_FALSE(node.writes) << node.name;
    EXPECT_LT(node.out.storage, static_cast<int>(graph.storage_bytes.size()));
  }
  EXPECT_EQ(primals, trace.primals.size());
  EXPECT_EQ(tangents, trace.tangent_of.size());
  EXPECT_EQ(graph.num_forward_outputs, trace.num_outputs + static_cast<int>(trace.written.size()));
  EXPECT_EQ(graph.outputs.size(), graph.num_forward_outputs + primals);
}

/// Traces the module, executes the joint graph, and expects every value to equal that of plain autograd bit by bit.
inline JointTrace expect_bitwise(torch::nn::Module& module, const capture::ForwardFunction& forward,
                                 const Tensors& inputs, bool native_dropout = false) {
  const graph::Graph graph = capture_of(module, forward, inputs);
  std::map<std::string, at::Tensor> before;
  for (const auto& tensor : module.named_parameters()) before[tensor.key()] = tensor.value().detach().clone();
  for (const auto& tensor : module.named_buffers()) before[tensor.key()] = tensor.value().clone();
  const at::Tensor generator = at::globalContext().defaultGenerator(at::kCPU).get_state();
  JointTrace trace = trace_joint(native_dropout ? with_native_dropout(graph) : graph, inputs);
  expect_well_formed(trace);
  EXPECT_TRUE(at::equal(generator, at::globalContext().defaultGenerator(at::kCPU).get_state()));
  for (const auto& tensor : module.named_parameters()) {
    EXPECT_TRUE(bitwise_equal(before[tensor.key()], tensor.value())) << tensor.key();
    EXPECT_FALSE(tensor.value().grad().defined()) << tensor.key();
  }
  for (const auto& tensor : module.named_buffers())
    EXPECT_TRUE(bitwise_equal(before[tensor.key()], tensor.value())) << tensor.key();

  const Eager eager = run_eagerly(module, forward, inputs, graph, trace);
  Tensors given;
  for (const PrimalSource& primal : trace.primals)
    given.push_back(
        (primal.kind == PrimalSource::Kind::Input ? inputs[primal.index] : graph.attributes[primal.index].tensor)
            .detach()
            .clone());
  given.insert(given.end(), eager.tangents.begin(), eager.tangents.end());
  at::manual_seed(11);
  const Tensors ours = JointRun(trace.graph, trace.constants)(given);

  const auto expect_same = [&](const at::Tensor& a, const at::Tensor& b, const std::string& what) {
    ASSERT_EQ(a.defined(), b.defined()) << what;
    if (a.defined()) {
      EXPECT_TRUE(bitwise_equal(a, b)) << what << ": " << (a - b).abs().max();
    }
  };
  for (size_t i = 0; i < eager.outputs.size(); ++i)
    expect_same(ours[i], eager.outputs[i], "output " + std::to_string(i));
  std::set<std::string> written;
  for (size_t k = 0; k < trace.written.size(); ++k) {
    const PrimalSource& primal = trace.primals[trace.written[k]];
    EXPECT_EQ(primal.kind, PrimalSource::Kind::Attribute);
    const std::string& name = graph.attributes[primal.index].name;
    EXPECT_TRUE(trace.graph.nodes[trace.written[k]].epilogue_mutation);
    written.insert(name);
    expect_same(ours[trace.num_outputs + k], eager.buffers.at(name), name);
  }
  for (const auto& [name, after] : eager.buffers)
    if (!written.contains(name)) expect_same(before.at(name), after, name);
  for (size_t i = 0; i < eager.gradients.size(); ++i)
    expect_same(ours[trace.graph.num_forward_outputs + i], eager.gradients[i], "gradient " + std::to_string(i));
  return trace;
}

inline JointTrace expect_bitwise(TracedModule& module, const Tensors& inputs, bool native_dropout = false) {
  return expect_bitwise(module, module.body, inputs, native_dropout);
}

/// Compares everything that `graph` returns and writes between the captured graph and the joint graph. Attributes must
/// be bound.
inline JointTrace expect_as_interpreted(const graph::Graph& graph, const Tensors& inputs) {
  Tensors before;
  for (const graph::Attribute& attribute : graph.attributes) before.push_back(attribute.tensor.detach().clone());
  const JointTrace trace = trace_joint(graph, inputs);
  expect_well_formed(trace);
  const auto primal = [&](const PrimalSource& source, const Tensors& given) {
    return source.kind == PrimalSource::Kind::Input ? given[source.index] : graph.attributes[source.index].tensor;
  };
  Tensors given;
  for (const PrimalSource& source : trace.primals) given.push_back(primal(source, inputs).detach().clone());

  const Tensors leaves = clones(inputs);
  Tensors outputs, wanted, roots, tangents;
  at::manual_seed(13);
  graph::Program(graph).run(leaves, outputs);
  for (const int output : trace.tangent_of) {
    roots.push_back(outputs[output]);
    tangents.push_back(at::randn_like(roots.back()));
  }
  for (const PrimalSource& source : trace.primals)
    if (primal(source, leaves).requires_grad()) wanted.push_back(primal(source, leaves));
  Tensors gradients(wanted.size());
  if (!roots.empty() && !wanted.empty()) gradients = torch::autograd::grad(roots, wanted, tangents, false, false, true);
  given.insert(given.end(), tangents.begin(), tangents.end());
  at::manual_seed(13);
  const Tensors ours = JointRun(trace.graph, trace.constants)(given);

  const auto expect_same = [](const at::Tensor& a, const at::Tensor& b, const std::string& what) {
    ASSERT_EQ(a.defined(), b.defined()) << what;
    EXPECT_TRUE(!a.defined() || bitwise_equal(a, b)) << what;
  };
  for (size_t i = 0; i < outputs.size(); ++i) expect_same(ours[i], outputs[i], "output " + std::to_string(i));
  for (size_t k = 0; k < trace.written.size(); ++k)
    expect_same(ours[trace.num_outputs + k], primal(trace.primals[trace.written[k]], leaves),
                "written " + std::to_string(trace.written[k]));
  size_t next = 0;
  for (size_t i = 0; i < trace.primals.size(); ++i) {
    const bool wants = primal(trace.primals[i], leaves).requires_grad();
    expect_same(ours[trace.graph.num_forward_outputs + i], wants ? gradients[next++] : at::Tensor(),
                "gradient " + std::to_string(i));
  }
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < before.size(); ++i) graph.attributes[i].tensor.copy_(before[i]);
  return trace;
}

/// A tensor for each input of `graph`, filled with 0.5, or with 0 if not floating-point.
inline Tensors any_inputs(const JointGraph& graph) {
  Tensors inputs;
  for (const JointNode& node : graph.nodes) {
    if (!node.is_input()) continue;
    std::vector<int64_t> shape, strides;
    for (const Extent& extent : node.out.shape) shape.push_back(extent.value);
    for (const Extent& extent : node.out.strides) strides.push_back(extent.value);
    const at::ScalarType type = types::to_aten(node.out.dtype);
    inputs.push_back(at::empty_strided(shape, strides, type).fill_(at::isFloatingType(type) ? 0.5 : 0));
  }
  return inputs;
}

inline std::vector<std::string> ops_of(const JointGraph& graph) {
  std::vector<std::string> ops;
  for (const JointNode& node : graph.nodes)
    if (node.kind == JointKind::Call) ops.push_back(node.op);
  return ops;
}

inline int64_t calls_of(const JointTrace& trace, const std::string& op) {
  const std::vector<std::string> ops = ops_of(trace.graph);
  return std::count(ops.begin(), ops.end(), op);
}

}  // namespace plumbline::partition
