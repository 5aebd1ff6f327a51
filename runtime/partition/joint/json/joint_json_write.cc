#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/partition/joint/json/joint_json.h"
#include "runtime/partition/joint/json/joint_json_words.h"
#include "runtime/partition/joint/result_text.h"

namespace plumbline::partition {
namespace {

using Json = nlohmann::json;
using Argument = JointArgument::Kind;
using Result = JointResult::Kind;

Json json_of(const Extent& extent) {
  if (extent.expression.empty()) return extent.value;
  return {{"sym", extent.expression}, {"hint", extent.value}};
}

template <class Items, class Write>
Json list(const Items& items, Write&& write) {
  Json::array_t all;
  all.reserve(items.size());
  for (const auto& item : items) all.push_back(write(item));
  return all;
}

Json json_of(const std::vector<Extent>& extents) {
  return list(extents, [](const Extent& each) { return json_of(each); });
}

Json json_of(const JointGraph& graph, const JointArgument& argument) {
  const auto items = [&] {
    return list(argument.items, [&](const JointArgument& item) { return json_of(graph, item); });
  };
  switch (argument.kind) {
    case Argument::None:
      return nullptr;
    case Argument::Node:
      return {{"node", graph.nodes[argument.node].name}};
    case Argument::Bool:
      return argument.integer != 0;
    case Argument::Integer:
      return argument.integer;
    case Argument::Float:
      return real_json(argument.real);
    case Argument::Complex:
      return {{"complex", Json::array({real_json(argument.real), real_json(argument.imaginary)})}};
    case Argument::String:
      return argument.text;
    case Argument::Dtype:
      return {{"dtype", types::name_of(argument.dtype)}};
    case Argument::Device:
      return {{"device", types::name_of(argument.device)}};
    case Argument::Layout:
      return {{"layout", types::name_of(argument.layout)}};
    case Argument::MemoryFormat:
      return {{"memory_format", types::name_of(argument.memory_format)}};
    case Argument::Symbolic:
      return {{"sym", argument.text}, {"hint", argument.integer}};
    case Argument::List:
      return items();
    case Argument::Slice:
      return {{"slice", items()}};
    case Argument::Other:
      return {{"other", argument.text}};
  }
  PLUMBLINE_CHECK(false, "a kind of argument without a JSON form");
}

Json json_of(const JointResult& out) {
  switch (out.kind) {
    case Result::None:
      return nullptr;
    case Result::Tuple:
      return {{"tuple", list(out.items, [](const JointResult& item) { return json_of(item); })}};
    case Result::Scalar: {
      Json json = {{"scalar", dtype_word(out)}, {"hint", out.scalar.value}};
      if (out.dtype == types::Dtype::Bool) json["hint"] = out.scalar.value != 0;
      if (out.dtype == types::Dtype::Float64) json["hint"] = real_json(out.real_hint);
      if (!out.scalar.expression.empty()) json["sym"] = out.scalar.expression;
      return json;
    }
    case Result::Tensor:
      break;
  }
  Json json = {{"dtype", types::name_of(out.dtype)},
               {"shape", json_of(out.shape)},
               {"strides", json_of(out.strides)},
               {"bytes", out.bytes}};
  if (out.offset != Extent{}) json["offset"] = json_of(out.offset);
  if (out.storage >= 0) json["storage"] = out.storage;
  if (out.device != types::Device{}) json["device"] = types::name_of(out.device);
  return json;
}

/// FLOPs are counted, so they are written as integers where they are.
Json flops_json(double flops) {
  constexpr double exact = 9007199254740992;  // 2^53
  if (flops == std::floor(flops) && std::abs(flops) <= exact) return static_cast<int64_t>(flops);
  return flops;
}

Json json_of(const JointGraph& graph, const JointNode& node) {
  Json json = {{"name", node.name}, {"kind", kind_words[static_cast<size_t>(node.kind)]}, {"out", json_of(node.out)}};
  if (!node.op.empty()) json["op"] = node.op;
  if (!node.overload.empty()) json["overload"] = node.overload;
  if (node.kind == JointKind::GetAttr) json["attr"] = node.attribute;
  if (node.kind == JointKind::Call || !node.args.empty())
    json["args"] = list(node.args, [&](const JointArgument& argument) { return json_of(graph, argument); });
  for (const auto& [key, argument] : node.kwargs) json["kwargs"][key] = json_of(graph, argument);
  if (node.aliases_input != kNoNode) json["aliases_input"] = graph.nodes[node.aliases_input].name;
  for (const auto& [key, set] : flag_words)
    if (node.*set) json[key] = true;
  for (const auto& [word, set] : tag_words)
    if (node.*set) json["tags"].push_back(word);
  if (node.mark != JointMark::None) json["mark"] = mark_words[static_cast<size_t>(node.mark)];
  if (node.recompute) json["recompute"] = policy_words[static_cast<size_t>(*node.recompute)];
  if (node.region >= 0) json["region"] = node.region;
  if (node.flops != 1) json["flops"] = flops_json(node.flops);
  if (!node.free_symbols.empty()) json["free_symbols"] = node.free_symbols;
  if (!node.binds.empty()) json["binds"] = node.binds;
  if (node.memory_budget) json["memory_budget"] = *node.memory_budget;
  return json;
}

template <class Nodes>
Json names_json(const JointGraph& graph, const Nodes& nodes) {
  return list(nodes, [&](NodeIndex node) { return node == kNoNode ? Json(nullptr) : Json(graph.nodes[node].name); });
}

}  // namespace

Json to_json(const JointGraph& graph) {
  Json json = {{"nodes", list(graph.nodes, [&](const JointNode& node) { return json_of(graph, node); })},
               {"outputs", names_json(graph, graph.outputs)},
               {"num_forward_outputs", graph.num_forward_outputs},
               {"storage_bytes", graph.storage_bytes}};
  for (const auto& [symbol, value] : graph.symbols) {
    Json range = Json::array({"-int_oo", "int_oo"});
    if (value.low) range[0] = *value.low;
    if (value.high) range[1] = *value.high;
    json["symbols"][symbol] = {{"hint", value.hint}, {"range", std::move(range)}};
  }
  return json;
}

}  // namespace plumbline::partition
