// Which autograd nodes compute the gradients of their edges separately.
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/backward/halved_node.h"
#include "runtime/backward/split/cut.h"
#include "runtime/backward/split/split_backward.h"

namespace plumbline::backward {
namespace {

/// Prefixes of autograd's names: matrix products and convolutions, whose formulas compute one product for each valid
/// edge.
constexpr std::string_view kProducts[] = {
    "AddbmmBackward",    "AddmmBackward",        "AddmvBackward",
    "AddrBackward",      "BaddbmmBackward",      "BmmBackward",
    "ConvDepthwise",     "ConvolutionBackward",  "CudnnConvolution",
    "DotBackward",       "LinearBackward",       "MiopenConvolution",
    "MkldnnConvolution", "MkldnnLinearBackward", "MmBackward",
    "MvBackward",        "QueuedLinearBackward", "SlowConv",
    "ThnnConv",
};

std::vector<std::string>& users_names() {
  static std::vector<std::string> names;
  return names;
}

bool names_a_divisible_node(const std::string& name) {
  for (std::string_view product : kProducts)
    if (name.starts_with(product)) return true;
  for (const std::string& part : users_names())
    if (name.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

void add_divisible_node(std::string part_of_name) { users_names().push_back(std::move(part_of_name)); }

bool is_divisible(const torch::autograd::Node& node) {
  if (dynamic_cast<const HalvedNode*>(&node)) return true;
  // A name belongs to a type; querying it allocates, and demangles for a user's function.
  static thread_local std::unordered_map<const std::type_info*, bool> known;
  static thread_local size_t users_names_known = 0;
  if (users_names_known != users_names().size()) {
    known.clear();
    users_names_known = users_names().size();
  }
  const auto [entry, is_new] = known.try_emplace(&typeid(node));
  if (is_new) entry->second = names_a_divisible_node(node.name());
  return entry->second;
}

}  // namespace plumbline::backward
