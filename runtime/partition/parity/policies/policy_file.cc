#include "runtime/partition/parity/policies/policy_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/error.h"
#include "runtime/io/gzip.h"
#include "runtime/io/json_place.h"
#include "runtime/partition/parity/policies/built_in_policies.h"
#include "runtime/partition/parity/policies/older_rules.h"

namespace plumbline::partition {
namespace {

constexpr std::pair<std::string_view, OpSet Policy::*> kLists[] = {
    {"recomputable_ops", &Policy::recomputable},
    {"pointwise_ops", &Policy::pointwise},
    {"view_ops", &Policy::view},
    {"random_ops", &Policy::random},
    {"compute_intensive_ops", &Policy::compute_intensive},
};

/// Adds a rule to a list or removes it.
void include(std::vector<NodeRule>& list, NodeRule rule, bool on) {
  std::erase(list, rule);
  if (on) list.push_back(rule);
}

/// The key of a rule in a file, and how it selects one of two functions for a policy.
struct Switch {
  std::string_view key;
  void (*apply)(Policy& policy, bool on);
};
constexpr Switch kSwitches[] = {
    {"cse", [](Policy& p, bool on) { p.cse = on; }},
    {"cse_keeps_forward_only_apart",
     [](Policy& p, bool on) { p.kept_apart = on ? &rules::values_of_gradients : &older_rules::nothing_apart; }},
    {"always_reorder",
     [](Policy& p, bool on) {
       p.order = on ? OrderRules() : OrderRules{&older_rules::reorder_tagged_graphs, ReorderBy::Depth, false};
     }},
    {"default_by_data_flow",
     [](Policy& p, bool on) { p.default_saves = on ? &older_rules::save_by_data_flow : &rules::save_by_marks; }},
    {"default_with_tags_is_min_cut",
     [](Policy& p, bool on) { p.default_is_min_cut = on ? &older_rules::in_any_graph : &rules::writes_beyond_inputs; }},
    {"exhausted_budget_saves_inputs",
     [](Policy& p, bool on) {
       p.exhausted_budget = on ? &older_rules::save_inputs_and_tagged : &rules::keep_last_cut;
     }},
    {"ban_used_far_apart", [](Policy& p, bool on) { p.bans.ban_used_far_apart = on; }},
    {"ban_long_fusible_chains", [](Policy& p, bool on) { p.bans.ban_long_fusible_chains = on; }},
    {"ban_materialized_backward", [](Policy& p, bool on) { p.bans.ban_materialized_backward = on; }},
    {"ban_not_in_allowlist", [](Policy& p, bool on) { p.bans.ban_not_in_allowlist = on; }},
    {"ban_reductions", [](Policy& p, bool on) { p.bans.ban_reductions = on; }},
    {"distance_counts_with_tags",
     [](Policy& p, bool on) { p.distance.applies = on ? &rules::in_every_graph : &older_rules::in_untagged_graphs; }},
    {"aggressive_only_denies",
     [](Policy& p, bool on) { p.aggressive = on ? &older_rules::no_bans : &rules::bans_by_size_and_distance; }},
    {"allowlist_holds_getitems",
     [](Policy& p, bool on) { p.outside_allowlist = on ? &rules::no_node : &rules::is_getitem_or_lift; }},
    {"never_ban_views", [](Policy& p, bool on) { include(p.never_banned, &rules::is_view, on); }},
    {"never_ban_symbolic_floats", [](Policy& p, bool on) { include(p.never_banned, &rules::is_symbolic_float, on); }},
    {"never_unban_collectives",
     [](Policy& p, bool on) { p.never_given_up = on ? &rules::is_collective : &rules::no_node; }},
    {"views_hide_forward_uses",
     [](Policy& p, bool on) {
       p.passes_materialization = on ? &older_rules::view_of_backward : &rules::view_of_either_half;
     }},
    {"params_free_to_save",
     [](Policy& p, bool on) { p.weight = on ? &rules::weight_with_free_parameters : &rules::weight_by_distance; }},
    {"recompute_views", [](Policy& p, bool on) { p.never_saved = on ? &rules::is_view : &rules::no_node; }},
    {"epilogue_mutation_infinite",
     [](Policy& p, bool on) { p.overwritten = on ? &rules::is_updated_later : &rules::no_node; }},
    {"recompute_tags_force",
     [](Policy& p, bool on) { p.forced_to_recompute = on ? &rules::is_tagged_to_recompute : &rules::no_node; }},
    {"honours_marks",
     [](Policy& p, bool on) {
       p.halves = on ? HalfRules() : HalfRules{&older_rules::runs_in_either_half, &older_rules::runs_in_either_half};
     }},
    {"only_inputs_pass_through_as_gradients",
     [](Policy& p, bool on) {
       p.belongs_to_backward = on ? &older_rules::needs_tangent_or_is_gradient : &rules::needs_tangent;
     }},
    {"outputs_are_next_to_backward", [](Policy& p, bool on) { p.output_distance = on ? 1 : kFarFromBackward; }},
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

/// A list replaces that of the base; {"add": [...], "remove": [...]} changes it.
void read_list(const JsonPlace& place, OpSet& ops) {
  if (!place.json().is_object()) {
    ops = read_ops(place);
    return;
  }
  place.expect_only({"add", "remove"});
  if (const auto remove = place.find("remove"))
    for (const std::string& op : read_ops(*remove))
      if (ops.erase(op) == 0) remove->fail("operators of the base, which lacks '" + op + "'");
  if (const auto add = place.find("add")) ops.merge(read_ops(*add));
}

void read_rules(const JsonPlace& place, Policy& policy, bool whole) {
  if (!place.json().is_object()) place.fail("an object");
  constexpr const char *kDistance = "max_distance", *kBelow = "max_distance_below",
                       *kBytes = "symbolic_noninteger_bytes";
  for (const auto& [key, value] : place.json().items()) {
    const bool is_switch = std::ranges::find(kSwitches, key, &Switch::key) != std::end(kSwitches);
    if (!is_switch && key != kDistance && key != kBelow && key != kBytes)
      place.fail("rules listed in policies/README.md (here is \"" + key + "\")");
  }
  const auto given = [&](const char* key) {
    std::optional<JsonPlace> found = place.find(key);
    return found || !whole ? found : place[key];
  };
  for (const auto& [key, apply] : kSwitches)
    if (const auto rule = given(key.data())) apply(policy, rule->boolean());
  if (const auto rule = given(kDistance)) policy.distance.beyond = rule->small(0, 1'000'000);
  if (const auto rule = given(kBelow)) policy.distance.below = rule->small(0, 1'000'000);
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
      // A full list names everything recomputable, unless the file says otherwise.
      if (member == &Policy::recomputable && list->json().is_array()) policy.recomputes_pointwise = false;
    }
  if (const auto pointwise = given("recomputes_pointwise")) policy.recomputes_pointwise = pointwise->boolean();
  if (const auto rules = given("rules")) read_rules(*rules, policy, !base);
  return policy;
}

Policy load_policy(const std::string& name_or_path) {
  if (const BuiltInPolicy* built_in = find_built_in(name_or_path))
    return parse_policy(built_in->json, std::string(built_in->name));
  std::string text;
  try {
    text = read_text(name_or_path);
  } catch (const InputError& error) {
    throw InputError("policy '" + name_or_path + "': neither one of " + known_names() + " nor a file (" + error.what() +
                     ")");
  }
  return parse_policy(text, name_or_path);
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const BuiltInPolicy& policy : built_in_policies()) names.emplace_back(policy.name);
  return names;
}

}  // namespace plumbline::partition
