// For tests: arguments of calls in joint graphs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::testing {

inline partition::JointArgument node(partition::NodeIndex index) {
  return {.kind = partition::JointArgument::Kind::Node, .node = index};
}
inline partition::JointArgument none() { return {}; }
inline partition::JointArgument number(int64_t value) {
  return {.kind = partition::JointArgument::Kind::Integer, .integer = value};
}
inline partition::JointArgument number(int value) { return number(int64_t{value}); }
inline partition::JointArgument number(double value) {
  return {.kind = partition::JointArgument::Kind::Float, .real = value};
}
inline partition::JointArgument flag(bool value) {
  return {.kind = partition::JointArgument::Kind::Bool, .integer = value};
}
inline partition::JointArgument text(std::string value) {
  return {.kind = partition::JointArgument::Kind::String, .text = std::move(value)};
}
inline partition::JointArgument dtype(types::Dtype value) {
  return {.kind = partition::JointArgument::Kind::Dtype, .dtype = value};
}
inline partition::JointArgument list(std::vector<partition::JointArgument> items) {
  return {.kind = partition::JointArgument::Kind::List, .items = std::move(items)};
}

}  // namespace plumbline::testing
