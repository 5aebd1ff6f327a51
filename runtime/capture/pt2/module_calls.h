// ModuleCallTracker: derives which module made which nodes, from the nn_module_stack that torch.export keeps per node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::capture::pt2 {

/// Turns the stacks of consecutive nodes into module calls, in the order of entry, an outer call before its inner
/// calls.
///
/// A stack is "key,fqn,class;key,fqn,class;..." from the root inwards; the root itself makes no call. The key
/// distinguishes the calls of one module (its second call has "@1"). If nodes of an outer module interrupt the nodes of
/// a call, the call's range [begin, end) includes the interruption.
class ModuleCallTracker {
 public:
  /// Appends to `calls`, which must outlive this object.
  explicit ModuleCallTracker(std::vector<graph::ModuleCall>& calls) : calls_(calls) {}

  /// Adds the next node of the graph, with index `node` and stack `stack`; an empty stack repeats the previous node's
  /// stack.
  void add(int32_t node, std::string_view stack);

 private:
  struct Open {
    std::string key;
    size_t call;
  };
  struct Latest {  // the module entered last within a call
    std::string key;
    size_t call = 0;
  };

  std::vector<graph::ModuleCall>& calls_;
  std::vector<Open> open_;
  Latest latest_in_root_;
  std::vector<Latest> latest_in_;  // by call
};

}  // namespace plumbline::capture::pt2
