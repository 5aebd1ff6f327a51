// plumbline partition: partitions a joint graph and prints the saved values, or compares with PyTorch's recorded
// answers.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "conformance/cli/commands.h"
#include "conformance/cli/options/drawing.h"
#include "conformance/cli/partition/partition_source.h"
#include "conformance/cli/partition/partition_table.h"
#include "conformance/cli/partition/partition_words.h"
#include "runtime/io/gzip.h"
#include "runtime/io/json_place.h"
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
    throw InputError("partition: " + command.source.path + " has several variants; choose one by --variant: " + known);
  }
  const auto found = file.variants.find(command.variant);
  if (found == file.variants.end())
    throw InputError("partition: " + command.source.path + " has no variant '" + command.variant +
                     "'; expected one of " + known);
  return found->first;
}

/// The options in force: a budget that the graph itself requests takes precedence over `options`.
partition::PartitionOptions in_force(partition::PartitionOptions options, const partition::Partition& made) {
  if (!made.budget_of_graph) return options;
  options.mode = partition::PartitionMode::Budget;
  options.budget = *made.budget_of_graph;
  return options;
}

/// A graph to partition, and the options.
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
    throw InputError("partition: --pareto covers all budgets, not --mode " + command.mode +
                     "; expected --mode budget=X:SOLVER or --mode budget=X:peak, with any X");
  if (command.statics == "params") task.options.static_inputs = task.params;
  task.words = tag_nodes(task.graph, command.words, task.policy, task.options);
  return task;
}

void keep_graph(const PartitionCommand& command, const Task& task) {
  if (!command.out.empty())
    partition::write_joint_graph_file(command.out.string(), task.model, task.graph, task.params);
}

/// The plan of each budget, as a table and, if requested, as a picture.
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
      std::printf("the graph itself requests a budget of %g, which is ignored here\n\n", *asks->memory_budget);
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
              to_string(options).c_str(), made.budget_of_graph ? ", as the graph itself requests," : "",
              task.policy.name.c_str(),
              options.static_inputs.empty() ? "none" : std::to_string(options.static_inputs.size()).c_str(),
              partition_table(made, memory).c_str());
  if (command.explain) std::printf("\n%s", partition::to_text(partition::statistics_of(made, task.policy)).c_str());
  return 0;
}

/// Computes each recorded run of the file, or of the chosen variant, and compares it with the record.
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
  std::printf("%d of %d equal to the record\n", equal, runs);
  return equal == runs ? 0 : 1;
}

int partition_graph(const PartitionCommand& command, const ProgramReader& read_program) {
  partition::JointGraphFile file = load_joint_graphs(command.source, read_program);
  if (command.runs) return answer_runs(command, file);
  const Task task = prepare(command, std::move(file));
  return command.frontier ? print_frontier(command, task) : print_partition(command, task);
}

}  // namespace

void add_partition(CLI::App& app, Command& chosen, ProgramReader read_program) {
  auto options = std::make_shared<PartitionCommand>();
  CLI::App* command = app.add_subcommand(
      "partition",
      "Divide a joint graph (the forward and the backward of a module in one) into a forward and a backward graph:\n"
      "what does the forward save for the backward, and what does the backward recompute?\n"
      "  plumbline partition model.pt2 --stages 4 --stage 1                 a stage, by PyTorch's minimum cut\n"
      "  plumbline partition mlp.json.gz --variant 2.15.0/aten              a graph that PyTorch traced\n"
      "  plumbline partition mlp.json.gz --variant 2.15.0/aten --mode bytes the fewest saved bytes, provably\n"
      "  plumbline partition mine.json --mode budget=0.25 --explain         a quarter of the way from none to all\n"
      "  plumbline partition mine.json --must-save gelu --dot mine.svg      your choice for one node, and a picture\n"
      "  plumbline partition mlp.json.gz --runs                             compare with PyTorch's recorded answers\n"
      "The format of the file is plumbline-joint-graph/1 (runtime/partition/parity/joint_graph_file.h); its nodes may\n"
      "carry recompute tags. Bytes are counted as PyTorch does (each saved tensor in full) and as memory holds them\n"
      "(each storage once).");
  command->add_option("graph", options->source.path, "A joint graph, or a program whose stage is traced into one")
      ->required()
      ->type_name("GRAPH.json[.gz]|M.pt2");
  CLI::Option* points = command
                            ->add_option("--split", options->source.split.points,
                                         "Of a program: where it is cut into stages, as for plumbline split")
                            ->delimiter(',')
                            ->type_name("FQN[:begin|:end],...");
  command->add_option("--stages", options->source.split.stages, "Of a program: the number of stages")
      ->check(CLI::PositiveNumber)
      ->excludes(points);
  command->add_option("--stage", options->source.stage, "Of a program that is cut: which stage, from 0")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--decompose", options->source.decompose,
                    "Of a program: decompose its larger operators into smaller ones");
  command->add_option("--variant", options->variant, "Which graph of the file, if it has several: 2.15.0/aten");
  CLI::Option* mode = command
                          ->add_option("--mode", options->mode,
                                       "default: save all that the backward uses. min-cut (if --mode is not given): "
                                       "PyTorch's cut, its weights and rules. aggressive: recompute everything that is "
                                       "not expensive. bytes: the fewest bytes. budget=X: saved bytes at X of the way "
                                       "from the inputs (0) to min-cut (1); budget=X:SOLVER solves by exact "
                                       "(PyTorch's, the default), greedy, hirschberg, knee-point or bytes (never above "
                                       "X). budget=X:peak: simulated peak at X of the way from the lowest possible to "
                                       "that of saving all")
                          ->type_name("MODE");
  CLI::Option* statics = command
                             ->add_option("--static", options->statics,
                                          "params: parameters and buffers are held anyway, saving them is free (the "
                                          "default); none: every input costs its bytes")
                             ->check(CLI::IsMember({"none", "params"}));
  command
      ->add_option("--policy", options->policy,
                   "Which operators are cheap to recompute, and which rules apply: " + join(partition::policy_names()) +
                       ", or a JSON file in that format. Default: that of the PyTorch that traced the graph")
      ->type_name("NAME|FILE");
  CLI::Option* must_save = command->add_option("--must-save", options->words.must_save, "Never recompute these nodes")
                               ->delimiter(',')
                               ->type_name("NODE,...");
  CLI::Option* recompute = command->add_option("--recompute", options->words.recompute, "Never save these nodes")
                               ->delimiter(',')
                               ->type_name("NODE,...");
  CLI::Option* explain = command->add_flag(
      "--explain", options->explain,
      "Also print PyTorch's statistics: which operators are not cheap, sizes, how often each is recomputed");
  CLI::Option* dot = command
                         ->add_option("--dot", options->drawing,
                                      "Draw the graph: a Graphviz file, or a picture if Graphviz is installed. Saved "
                                      "values are gold, nodes that run in both parts are blue")
                         ->type_name("F.dot|F.svg");
  CLI::Option* part =
      command->add_option("--part", options->part, "What --dot draws: joint (the default), forward, backward")
          ->check(CLI::IsMember({"joint", "forward", "backward"}))
          ->needs(dot);
  CLI::Option* runs = command->add_flag(
      "--runs", options->runs,
      "Compute every run that the file records and compare it with PyTorch's answer; exit code 1 if one differs");
  CLI::Option* pareto = command->add_flag(
      "--pareto", options->frontier,
      "Print the plan of each budget from 0 to 1: bytes saved, simulated peak, recomputed FLOPs. --mode "
      "budget=X:SOLVER or budget=X:peak chooses the kind of budget; X is ignored");
  command->add_option("--svg", options->frontier_picture, "Also draw it")->type_name("F.svg")->needs(pareto);
  CLI::Option* out = command
                         ->add_option("-o,--out", options->out,
                                      "Save the joint graph with its tags in this file, after partitioning it")
                         ->type_name("GRAPH.json[.gz]");
  CLI::Option* json = command->add_flag(
      "--json", options->json,
      "One line of JSON: saved, saved_sym, fw, bw by name, bytes; with --runs one for each run, without comparing it");
  for (CLI::Option* other : {mode, statics, must_save, recompute, explain, dot, part, pareto, out})
    runs->excludes(other);
  for (CLI::Option* other : {explain, dot}) pareto->excludes(other);
  json->excludes(explain);
  command->callback([=, &chosen] {
    options->mode_given = mode->count() > 0;
    chosen = [options, read_program] { return partition_graph(*options, read_program); };
  });
}

}  // namespace plumbline::cli
