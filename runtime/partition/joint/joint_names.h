// Names for the nodes of a joint graph, as in torch.fx: a call is named after its operator; if that name is taken or
// has a meaning in Python, a number is appended.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace plumbline::partition {

class JointNames {
 public:
  /// Returns a name that is not taken, and takes it: `wish` ("mm"), or `wish` with the next free number ("mm_1"). A
  /// Python name such as "sum" always has a number.
  std::string unique(std::string_view wish);
  /// Takes `name`.
  void reserve(const std::string& name) { taken_.insert(name); }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> last_number_;
};

/// Returns the operator's name without its namespace: "mm" for "aten::mm". Refers to `op`.
std::string_view name_base(std::string_view op);

}  // namespace plumbline::partition
