// Which modules made which nodes, from the nn_module_stack that torch.export keeps with every node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::capture::pt2 {

/// Turns the stacks of consecutive nodes into module calls, outer before inner, in the order of entry.
///
/// A stack is "key,fqn,class;key,fqn,class;..." from the root inwards; the root itself makes no call. The key tells the
/// calls of one module apart (its second call has "@1"). Nodes of a call that others of its ancestors interrupt belong
/// to one call.
class ModuleCallTracker {
 public:
  explicit ModuleCallTracker(std::vector<graph::ModuleCall>& calls) : calls_(calls) {}

  /// Says that the next node of the graph, number `node`, has this stack; an empty one is that of the node before.
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
