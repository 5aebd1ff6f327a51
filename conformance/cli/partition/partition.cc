// plumbline partition: what a partitioner saves of a joint graph, and whether PyTorch's own answers are met.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "conformance/cli/commands.h"
#include "conformance/cli/drawing.h"
#include "conformance/cli/partition/partition_source.h"
#include "conformance/cli/partition/partition_table.h"
#include "conformance/cli/partition/partition_words.h"
#include "runtime/gzip.h"
#include "runtime/json_place.h"
#include "runtime/partition/budget/frontier.h"
#include "runtime/partition/joint/joint_dot.h"
#include "runtime/partition/parity/answer_names.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/parity/recorded.h"
#include "runtime/partition/parity/statistics.h"

namespace plumbline::cli {
namespace {

using Json = nlohmann::json;
using Variant = partition::JointGraphFile::Variant;

struct PartitionCommand {
  PartitionSource source;
  std::string variant, mode = "min-cut", statics = "params", policy, part = "joint";
  PartitionWords words;
  std::filesystem::path out, drawing, frontier_picture;
  bool mode_given = false, runs = false, json = false, explain = false, frontier = false;
};

std::vector<std::string> names_of(const std::map<std::string, Variant>& variants) {
  std::vector<std::string> names;
  for (const auto& [name, variant] : variants) names.push_back(name);
  return names;
}

const std::string& chosen_variant(const PartitionCommand& command, const partition::JointGraphFile& file) {
  const std::string known = join(names_of(file.variants));
  if (command.variant.empty()) {
    if (file.variants.size() == 1) return file.variants.begin()->first;
    throw InputError("partition: " + command.source.path + " has several variants; --variant says which: " + known);
  }
  const auto found = file.variants.find(command.variant);
  if (found == file.variants.end())
    throw InputError("partition: " + command.source.path + " has no variant '" + command.variant + "', only " + known);
  return found->first;
}

/// The options by which it was divided: the graph's own word on the budget goes before theirs.
partition::PartitionOptions in_force(partition::PartitionOptions options, const partition::Partition& made) {
  if (!made.budget_of_graph) return options;
  options.mode = partition::PartitionMode::Budget;
  options.budget = *made.budget_of_graph;
  return options;
}

/// What is to be divided, and how.
struct Task {
  std::string model, variant;
  partition::JointGraph graph;
  std::vector<int> params;
  partition::Policy policy;
  partition::PartitionOptions options;
  PartitionWords words;
};

Task prepare(const PartitionCommand& command, partition::JointGraphFile file) {
  Task task;
  task.model = file.model;
  task.variant = chosen_variant(command, file);
  const Variant& variant = file.variants.at(task.variant);
  task.graph = std::move(file.graphs.at(variant.graph));
  task.params = variant.params;
  task.policy = partition::load_policy(command.policy.empty() ? partition::policy_name_of(variant) : command.policy);
  task.options = partition::parse_partition_mode(command.mode);
  if (command.frontier && command.mode_given && task.options.mode != partition::PartitionMode::Budget)
    throw InputError("partition: --pareto goes through all budgets, not --mode " + command.mode +
                     "; accepted beside it: --mode budget=X:SOLVER and --mode budget=X:peak, whatever X");
  if (command.statics == "params") task.options.static_inputs = task.params;
  task.words = tag_nodes(task.graph, command.words, task.policy, task.options);
  return task;
}

void keep_graph(const PartitionCommand& command, const Task& task) {
  if (!command.out.empty())
    partition::write_joint_graph_file(command.out.string(), task.model, task.graph, task.params);
}

/// What each budget buys, as a table and, if asked for, as a picture.
int print_frontier(const PartitionCommand& command, const Task& task) {
  const std::vector<partition::BudgetPoint> points = partition::budget_frontier(task.graph, task.policy, task.options);
  if (!command.words.must_save.empty() || !command.words.recompute.empty()) {
    partition::JointGraph graph = task.graph;
    for (partition::JointNode& node : graph.nodes) node.memory_budget.reset();
    partition::PartitionOptions end = task.options;
    end.mode = partition::PartitionMode::Budget;
    for (const double budget : {0.0, 1.0}) {
      end.budget = budget;
      expect_kept(task.words, partition::partition(graph, task.policy, end), end);
    }
  }
  if (!command.frontier_picture.empty()) write_text(command.frontier_picture.string(), partition::frontier_svg(points));
  keep_graph(command, task);
  if (!command.json) {
    const auto asks = std::ranges::find_if(task.graph.nodes,
                                           [](const partition::JointNode& n) { return n.memory_budget.has_value(); });
    if (asks != task.graph.nodes.end())
      std::printf("the graph itself asks for a budget of %g, which is not looked at here\n\n", *asks->memory_budget);
    std::printf("%s", partition::frontier_text(points).c_str());
    return 0;
  }
  Json lines = Json::array();
  for (const partition::BudgetPoint& point : points)
    lines.push_back({{"budget", point.budget},
                     {"bytes", point.saved_bytes},
                     {"bytes_new_storage", point.saved_storage},
                     {"peak", point.peak},
                     {"recomputation", point.recomputation}});
  std::printf("%s\n", json_text(lines).c_str());
  return 0;
}

int print_partition(const PartitionCommand& command, const Task& task) {
  const partition::Partition made = partition::partition(task.graph, task.policy, task.options);
  const partition::PartitionOptions options = in_force(task.options, made);
  expect_kept(task.words, made, options);
  const partition::MemoryProfile memory = partition::simulate_memory(made);
  if (!command.drawing.empty()) {
    const partition::PartitionPart part = command.part == "forward"    ? partition::PartitionPart::Forward
                                          : command.part == "backward" ? partition::PartitionPart::Backward
                                                                       : partition::PartitionPart::Joint;
    write_drawing(partition::to_dot(made, part), command.drawing);
  }
  keep_graph(command, task);
  if (command.json) {
    Json answer = partition::answer_json(made);
    answer.update({{"model", task.model},
                   {"variant", task.variant},
                   {"run", to_string(options) + "/static=" + command.statics},
                   {"policy", task.policy.name},
                   {"bytes", memory.saved_nodes},
                   {"bytes_new_storage", memory.saved_storage},
                   {"peak", memory.peak},
                   {"between", memory.between}});
    std::printf("%s\n", json_text(answer).c_str());
    return 0;
  }
  const std::string of = task.model.empty() ? task.variant : task.model + ", " + task.variant;
  std::printf("%s: %zu nodes; %s%s by the policy %s, static inputs: %s\n\n%s", of.c_str(), task.graph.nodes.size(),
              to_string(options).c_str(), made.budget_of_graph ? ", as the graph itself asks for," : "",
              task.policy.name.c_str(),
              options.static_inputs.empty() ? "none" : std::to_string(options.static_inputs.size()).c_str(),
              partition_table(made, memory).c_str());
  if (command.explain) std::printf("\n%s", partition::to_text(partition::statistics_of(made, task.policy)).c_str());
  return 0;
}

/// Each recorded run of the file (of one variant, if that is chosen), answered.
int answer_runs(const PartitionCommand& command, const partition::JointGraphFile& file) {
  const std::string only = command.variant.empty() ? "" : chosen_variant(command, file);
  std::map<std::string, partition::Policy> policies;
  int runs = 0, equal = 0;
  size_t width = 0;
  for (const auto& [key, run] : file.runs) width = std::max(width, key.size());
  for (const auto& [key, run] : file.runs) {
    if (!only.empty() && run.variant != only) continue;
    ++runs;
    const Variant& variant = file.variants.at(run.variant);
    const std::string name = command.policy.empty() ? partition::policy_name_of(variant) : command.policy;
    if (!policies.contains(name)) policies.emplace(name, partition::load_policy(name));
    Json answer;
    std::string verdict;
    try {
      const partition::Partition made =
          partition::partition(file.graphs.at(variant.graph), policies.at(name), partition::options_of(file, run));
      answer = partition::answer_json(made);
      verdict = run.error ? "different  PyTorch refuses: " + *run.error : join(partition::differences(run, made), "; ");
      if (verdict.empty()) verdict = "equal";
    } catch (const InputError& error) {
      answer["error"] = error.what();
      verdict = run.error ? "equal      both refuse" : "different  refused: " + std::string(error.what());
    }
    equal += verdict.starts_with("equal");
    if (!verdict.starts_with("equal") && !verdict.starts_with("different")) verdict = "different  " + verdict;
    if (command.json) {
      answer.update({{"model", file.model}, {"variant", run.variant}, {"run", run.mode + "/static=" + run.statics}});
      std::printf("%s\n", json_text(answer).c_str());
    } else {
      std::printf("%-*s  %s\n", static_cast<int>(width), key.c_str(), verdict.c_str());
    }
  }
  if (runs == 0)
    throw InputError("partition: " + command.source.path + " records no runs" + (only.empty() ? "" : " of " + only) +
                     "; without --runs it is partitioned by --mode");
  if (command.json) return 0;
  std::printf("%d of %d equal to what is recorded\n", equal, runs);
  return equal == runs ? 0 : 1;
}

int partition_graph(const PartitionCommand& command) {
  partition::JointGraphFile file = load_joint_graphs(command.source);
  if (command.runs) return answer_runs(command, file);
  const Task task = prepare(command, std::move(file));
  return command.frontier ? print_frontier(command, task) : print_partition(command, task);
}

}  // namespace

void add_partition(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<PartitionCommand>();
  CLI::App* command = app.add_subcommand(
      "partition",
      "Divide a joint graph, the forward and the backward of a module in one, into a forward and a backward graph: "
      "what\n"
      "does the forward save for the backward, and what does the backward compute again?\n"
      "  plumbline partition model.pt2 --stages 4 --stage 1                 of a stage: PyTorch's minimum cut\n"
      "  plumbline partition mlp.json.gz --variant 2.15.0/aten              of a graph that PyTorch traced\n"
      "  plumbline partition mlp.json.gz --variant 2.15.0/aten --mode bytes the fewest saved bytes, provably\n"
      "  plumbline partition mine.json --mode budget=0.25 --explain         a quarter of the way from none to all\n"
      "  plumbline partition mine.json --must-save gelu --dot mine.svg      a word of your own, and a picture\n"
      "  plumbline partition mlp.json.gz --runs                             PyTorch's recorded answers, are they met?\n"
      "The form of the file is plumbline-joint-graph/1 (runtime/partition/parity/joint_graph_file.h); its nodes may "
      "carry "
      "recompute\n"
      "tags. A byte is counted as PyTorch does (each saved tensor in full) and as memory holds it (each storage "
      "once).");
  command->add_option("graph", options->source.path, "A joint graph, or a program whose stage is traced into one")
      ->required()
      ->type_name("GRAPH.json[.gz]|M.pt2");
  CLI::Option* points = command
                            ->add_option("--split", options->source.split.points,
                                         "Of a program: where it is cut into stages, as for plumbline split")
                            ->delimiter(',')
                            ->type_name("FQN[:begin|:end],...");
  command->add_option("--stages", options->source.split.stages, "Of a program: cut into so many stages")
      ->check(CLI::PositiveNumber)
      ->excludes(points);
  command->add_option("--stage", options->source.stage, "Of a program that is cut: which stage, from 0")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--decompose", options->source.decompose,
                    "Of a program: write its larger operators as the smaller ones they are made of");
  command->add_option("--variant", options->variant, "Which graph of the file, where it has several: 2.15.0/aten");
  CLI::Option* mode = command
                          ->add_option("--mode", options->mode,
                                       "default: save all that the backward uses. min-cut (taken if none is named): "
                                       "PyTorch's cut, its weights and rules. aggressive: compute again whatever is "
                                       "not expensive. bytes: the fewest bytes. budget=X: of the bytes saved, X of the "
                                       "way from the inputs (0) to min-cut (1); budget=X:SOLVER solves by exact "
                                       "(PyTorch's, the default), greedy, hirschberg, knee-point or bytes (never above "
                                       "X). budget=X:peak: of the simulated peak, X of the way from what nothing gets "
                                       "below to saving all")
                          ->type_name("MODE");
  CLI::Option* statics = command
                             ->add_option("--static", options->statics,
                                          "params: parameters and buffers are held anyway, saving them is free (the "
                                          "default); none: every input costs its bytes")
                             ->check(CLI::IsMember({"none", "params"}));
  command
      ->add_option("--policy", options->policy,
                   "What is cheap to compute again, and which rules hold: " + join(partition::policy_names()) +
                       ", or a JSON file of that form. Default: of the PyTorch that made the graph")
      ->type_name("NAME|FILE");
  CLI::Option* must_save =
      command->add_option("--must-save", options->words.must_save, "Never compute these nodes again")
          ->delimiter(',')
          ->type_name("NODE,...");
  CLI::Option* recompute = command->add_option("--recompute", options->words.recompute, "Never save these nodes")
                               ->delimiter(',')
                               ->type_name("NODE,...");
  CLI::Option* explain = command->add_flag(
      "--explain", options->explain,
      "Also print PyTorch's statistics: which operators are not cheap, sizes, what is computed again how often");
  CLI::Option* dot = command
                         ->add_option("--dot", options->drawing,
                                      "Draw the graph: a Graphviz file, or a picture if Graphviz is installed. Saved "
                                      "values are gold, what runs in both is blue")
                         ->type_name("F.dot|F.svg");
  CLI::Option* part =
      command->add_option("--part", options->part, "What --dot draws: joint (the default), forward, backward")
          ->check(CLI::IsMember({"joint", "forward", "backward"}))
          ->needs(dot);
  CLI::Option* runs = command->add_flag(
      "--runs", options->runs,
      "Answer every run that the file records and hold it against PyTorch's answer; exit code 1 where one differs");
  CLI::Option* pareto = command->add_flag(
      "--pareto", options->frontier,
      "Print what each budget from 0 to 1 buys: bytes saved, simulated peak, FLOPs of what is computed again. --mode "
      "budget=X:SOLVER or budget=X:peak says which budgets; X is not looked at");
  command->add_option("--svg", options->frontier_picture, "Draw it, too")->type_name("F.svg")->needs(pareto);
  CLI::Option* out =
      command
          ->add_option("-o,--out", options->out, "Keep the joint graph in this file, with its tags, once it is divided")
          ->type_name("GRAPH.json[.gz]");
  CLI::Option* json = command->add_flag(
      "--json", options->json,
      "One line of JSON: saved, saved_sym, fw, bw by name, bytes; with --runs one for each run, and nothing is judged");
  for (CLI::Option* other : {mode, statics, must_save, recompute, explain, dot, part, pareto, out})
    runs->excludes(other);
  for (CLI::Option* other : {explain, dot}) pareto->excludes(other);
  json->excludes(explain);
  command->callback([=, &chosen] {
    options->mode_given = mode->count() > 0;
    chosen = [options] { return partition_graph(*options); };
  });
}

}  // namespace plumbline::cli
