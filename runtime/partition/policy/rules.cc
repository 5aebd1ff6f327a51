#include "runtime/partition/policy/rules.h"

namespace plumbline::partition {

std::vector<std::string> CutRules::names() const {
  std::vector<std::string> names;
  if (ban_used_far_apart) names.emplace_back("used_far_apart");
  if (ban_long_fusible_chains) names.emplace_back("long_fusible_chains");
  if (ban_materialized_backward) names.emplace_back("materialized_backward");
  if (ban_not_in_allowlist) names.emplace_back("not_in_allowlist");
  if (ban_reductions) names.emplace_back("reductions");
  return names;
}

}  // namespace plumbline::partition
