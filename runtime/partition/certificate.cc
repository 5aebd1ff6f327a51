#include "runtime/partition/partition.h"

namespace plumbline {
namespace {

/// FNV-1a (Fowler, Noll and Vo) with 64 bits.
class Hash {
 public:
  void add(uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) mix(static_cast<unsigned char>(number >> (8 * byte)));
  }
  void add(const std::string& text) {
    add(text.size());
    for (const char c : text) mix(static_cast<unsigned char>(c));
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
  void add(const Subgraph& part) {
    add(part.inputs);
    add(part.ops);
    add(part.outputs);
  }
  uint64_t value() const { return value_; }

 private:
  void mix(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace

uint64_t certificate(const Partition& partition) {
  Hash hash;
  for (const JointNode& node : partition.graph.nodes) {
    hash.add(node.name);
    hash.add(node.op);
    hash.add(node.overload);
    hash.add(node.out.dtype);
    hash.add(node.out.shape);
    for_each_input(node, [&](NodeIndex input) { hash.add(input); });
  }
  hash.add(partition.graph.outputs);
  hash.add(partition.forward);  // returns what is saved
  hash.add(partition.backward);
  hash.add(partition.replayed);
  return hash.value();
}

}  // namespace plumbline
