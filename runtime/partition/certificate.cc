#include <bit>

#include "runtime/fnv1a.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {
namespace {

/// FNV-1a over all added values.
class Hash {
 public:
  void add(uint64_t number) {
    char bytes[8];
    for (int byte = 0; byte < 8; ++byte) bytes[byte] = static_cast<char>(number >> (8 * byte));
    value_ = fnv1a({bytes, 8}, value_);
  }
  void add(const std::string& text) {
    add(text.size());
    value_ = fnv1a(text, value_);
  }
  template <class T>
  void add(const std::vector<T>& all) {
    add(all.size());
    for (const T& one : all) add(one);
  }
  void add(NodeIndex node) { add(static_cast<uint64_t>(node)); }
  void add(const Extent& extent) {
    add(static_cast<uint64_t>(extent.value));
    add(extent.expression);
  }
  void add(const JointArgument& argument) {
    add(static_cast<uint64_t>(argument.kind));
    add(argument.node);
    add(static_cast<uint64_t>(argument.integer));
    add(std::bit_cast<uint64_t>(argument.real));
    add(std::bit_cast<uint64_t>(argument.imaginary));
    add(static_cast<uint64_t>(argument.dtype));
    add(static_cast<uint64_t>(argument.layout));
    add(static_cast<uint64_t>(argument.memory_format));
    add(argument.device);
    add(argument.text);
    add(argument.items);
  }
  void add(types::Device device) {
    add(static_cast<uint64_t>(device.kind));
    add(static_cast<uint64_t>(device.index));
  }
  void add(const JointResult& result) {
    add(static_cast<uint64_t>(result.kind));
    add(static_cast<uint64_t>(result.dtype));
    add(result.device);
    add(result.shape);
    add(result.strides);
    add(result.offset);
    add(result.items);
  }
  void add(const Subgraph& part) {
    add(part.inputs);
    add(part.ops);
    add(part.outputs);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = fnv1a("");
};

}  // namespace

uint64_t certificate(const Partition& partition) {
  Hash hash;
  for (const JointNode& node : partition.graph.nodes) {
    hash.add(node.name);
    hash.add(node.op);
    hash.add(node.overload);
    hash.add(node.attribute);
    hash.add(node.args);
    hash.add(node.kwargs.size());
    for (const auto& [name, argument] : node.kwargs) {
      hash.add(name);
      hash.add(argument);
    }
    hash.add(node.out);
  }
  hash.add(partition.graph.outputs);
  hash.add(static_cast<uint64_t>(partition.graph.num_forward_outputs));
  hash.add(partition.saved);
  hash.add(partition.forward);
  hash.add(partition.backward);
  hash.add(partition.replayed);
  return hash.value();
}

}  // namespace plumbline::partition
