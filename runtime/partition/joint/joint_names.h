// Names for the nodes of a joint graph, as torch.fx gives them: a call is named after its operator, and where that name
// is taken, or means something in Python, it gets a number.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace plumbline::partition {

class JointNames {
 public:
  /// A name that was not given before: `wish` ("mm"), or `wish` and the next free number ("mm_1"; "sum_1" at once).
  std::string unique(std::string_view wish);
  /// `name` is given elsewhere.
  void reserve(const std::string& name) { taken_.insert(name); }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> last_number_;
};

/// What a call of an operator is named after: "aten::mm" is "mm", "prims::sum" is "sum".
std::string_view name_base(std::string_view op);

}  // namespace plumbline::partition
