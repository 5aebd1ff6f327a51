// Derives which modules made which nodes from the nn_module_stack that torch.export keeps with every node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::capture::pt2 {

/// Turns the stacks of consecutive nodes into module calls, outer before inner, in the order of entry.
///
/// A stack is "key,fqn,class;key,fqn,class;..." from the root inwards; the root itself makes no call. The key
/// distinguishes the calls of one module (its second call has "@1"). The nodes of one call belong together even if
/// calls of its ancestors interrupt them.
class ModuleCallTracker {
 public:
  explicit ModuleCallTracker(std::vector<graph::ModuleCall>& calls) : calls_(calls) {}

  /// The next node of the graph, number `node`, has this stack; an empty stack repeats the previous node's.
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
