#include "runtime/partition/cut/policy.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "runtime/error.h"
#include "runtime/json_place.h"
#include "runtime/partition/cut/built_in_policies.h"

namespace plumbline::partition {
namespace {

constexpr std::pair<std::string_view, OpSet Policy::*> kLists[] = {
    {"recomputable_ops", &Policy::recomputable},
    {"pointwise_ops", &Policy::pointwise},
    {"view_ops", &Policy::view},
    {"random_ops", &Policy::random},
    {"compute_intensive_ops", &Policy::compute_intensive},
};

constexpr std::pair<std::string_view, bool Policy::*> kSwitches[] = {
    {"cse", &Policy::cse},
    {"cse_keeps_forward_only_apart", &Policy::cse_keeps_forward_only_apart},
    {"always_reorder", &Policy::always_reorder},
    {"default_by_data_flow", &Policy::default_by_data_flow},
    {"default_with_tags_is_min_cut", &Policy::default_with_tags_is_min_cut},
    {"exhausted_budget_saves_inputs", &Policy::exhausted_budget_saves_inputs},
    {"ban_used_far_apart", &Policy::ban_used_far_apart},
    {"ban_long_fusible_chains", &Policy::ban_long_fusible_chains},
    {"ban_materialized_backward", &Policy::ban_materialized_backward},
    {"ban_not_in_allowlist", &Policy::ban_not_in_allowlist},
    {"ban_reductions", &Policy::ban_reductions},
    {"distance_counts_with_tags", &Policy::distance_counts_with_tags},
    {"aggressive_only_denies", &Policy::aggressive_only_denies},
    {"allowlist_holds_getitems", &Policy::allowlist_holds_getitems},
    {"never_ban_views", &Policy::never_ban_views},
    {"never_ban_symbolic_floats", &Policy::never_ban_symbolic_floats},
    {"never_unban_collectives", &Policy::never_unban_collectives},
    {"views_hide_forward_uses", &Policy::views_hide_forward_uses},
    {"params_free_to_save", &Policy::params_free_to_save},
    {"recompute_views", &Policy::recompute_views},
    {"epilogue_mutation_infinite", &Policy::epilogue_mutation_infinite},
    {"recompute_tags_force", &Policy::recompute_tags_force},
    {"honours_marks", &Policy::honours_marks},
    {"only_inputs_pass_through_as_gradients", &Policy::only_inputs_pass_through_as_gradients},
    {"outputs_are_next_to_backward", &Policy::outputs_are_next_to_backward},
};

std::string known_names() {
  std::string names;
  for (const BuiltInPolicy& policy : built_in_policies())
    names += (names.empty() ? "" : ", ") + std::string(policy.name);
  return names;
}

const BuiltInPolicy* find_built_in(std::string_view name) {
  const auto policies = built_in_policies();
  const auto found = std::find_if(policies.begin(), policies.end(), [&](const auto& p) { return p.name == name; });
  return found == policies.end() ? nullptr : &*found;
}

OpSet read_ops(const JsonPlace& place) {
  OpSet ops;
  for (const JsonPlace& item : place.items()) {
    const std::string op = item.text();
    const size_t colons = op.find("::");
    if (colons == 0 || colons == std::string::npos || colons + 2 == op.size() || op.find('.') != std::string::npos)
      item.fail("an operator without its overload, such as \"aten::add\"");
    if (!ops.insert(op).second) item.fail("each operator once");
  }
  return ops;
}

/// A list replaces the base's; {"add": [...], "remove": [...]} changes it.
void read_list(const JsonPlace& place, OpSet& ops) {
  if (!place.json().is_object()) {
    ops = read_ops(place);
    return;
  }
  place.expect_only({"add", "remove"});
  if (const auto remove = place.find("remove"))
    for (const std::string& op : read_ops(*remove))
      if (ops.erase(op) == 0) remove->fail("operators that the base has, which '" + op + "' is not");
  if (const auto add = place.find("add")) ops.merge(read_ops(*add));
}

void read_rules(const JsonPlace& place, Policy& policy, bool whole) {
  if (!place.json().is_object()) place.fail("an object");
  constexpr const char *kDistance = "max_distance", *kBelow = "max_distance_below",
                       *kBytes = "symbolic_noninteger_bytes";
  for (const auto& [key, value] : place.json().items()) {
    const bool is_switch = std::any_of(std::begin(kSwitches), std::end(kSwitches),
                                       [&, &key = key](const auto& known) { return known.first == key; });
    if (!is_switch && key != kDistance && key != kBelow && key != kBytes)
      place.fail("rules that policies/README.md names (here is \"" + key + "\")");
  }
  const auto given = [&](const char* key) {
    std::optional<JsonPlace> found = place.find(key);
    return found || !whole ? found : place[key];
  };
  for (const auto& [key, member] : kSwitches)
    if (const auto rule = given(key.data())) policy.*member = rule->boolean();
  if (const auto rule = given(kDistance)) policy.max_distance = rule->small(0, 1'000'000);
  if (const auto rule = given(kBelow)) policy.max_distance_below = rule->small(0, 1'000'000);
  if (const auto rule = given(kBytes)) policy.symbolic_noninteger_bytes = rule->integer(0, 1'000'000'000);
}

}  // namespace

Policy parse_policy(std::string_view json, const std::string& source) {
  const nlohmann::json document = parse_json(json, source);
  const JsonPlace place(document, source);
  place.expect_only({"name", "about", "base", "recomputable_ops", "recomputes_pointwise", "pointwise_ops", "view_ops",
                     "random_ops", "compute_intensive_ops", "rules"});
  Policy policy;
  const auto base = place.find("base");
  if (base) {
    const BuiltInPolicy* built_in = find_built_in(base->text());
    if (!built_in) base->fail("one of " + known_names());
    policy = parse_policy(built_in->json, std::string(built_in->name));
  }
  policy.name = place["name"].text();
  if (const auto about = place.find("about")) about->text();
  const auto given = [&](std::string_view key) {
    std::optional<JsonPlace> found = place.find(key.data());
    return found || base ? found : place[key.data()];
  };
  for (const auto& [key, member] : kLists)
    if (const auto list = given(key)) {
      read_list(*list, policy.*member);
      // A list of one's own says all that is recomputable, unless the file says more.
      if (member == &Policy::recomputable && list->json().is_array()) policy.recomputes_pointwise = false;
    }
  if (const auto pointwise = given("recomputes_pointwise")) policy.recomputes_pointwise = pointwise->boolean();
  if (const auto rules = given("rules")) read_rules(*rules, policy, !base);
  return policy;
}

Policy load_policy(const std::string& name_or_path) {
  if (const BuiltInPolicy* built_in = find_built_in(name_or_path))
    return parse_policy(built_in->json, std::string(built_in->name));
  std::ifstream file(name_or_path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw InputError("policy '" + name_or_path + "': neither a file that can be read nor one of " + known_names());
  return parse_policy(text.str(), name_or_path);
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const BuiltInPolicy& policy : built_in_policies()) names.emplace_back(policy.name);
  return names;
}

}  // namespace plumbline::partition
