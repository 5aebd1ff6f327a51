// plumbline simulate: how long a schedule takes, what limits it, and pictures of it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "conformance/cli/commands.h"
#include "conformance/cli/options/skip_option.h"
#include "conformance/cli/schedule/schedule_options.h"
#include "conformance/cli/schedule/simulate_report.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "conformance/report/chrome_trace.h"
#include "conformance/report/svg/timeline_svg.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/simulation/costs.h"
#include "runtime/text/join.h"
#include "runtime/text/number.h"

namespace plumbline::cli {
namespace {

struct SimulateCommand {
  ScheduleChoice choice;
  std::vector<double> forward = {1}, input = {1}, weight = {1}, bytes = {0}, activation = {1};
  double comm = 0, bandwidth = 0, overlap = 1, gather = 0, reduce = 0, offload = 0, reload = 0, hidden = 0;
  std::optional<double> weight_share;  ///< not given: 1, or the share for which the order was generated
  int buffers = 0;
  bool defer = false, json = false;
  std::vector<std::string> skips, scale;
  std::string trace, svg;
};

/// The costs of a step. Each option holds one value for all stages or one per stage; times and activations are
/// multiplied by `share`.
schedule::StepCosts costs_of(const SimulateCommand& command, int stages, double weight_share, double share) {
  const auto require = [&](const std::vector<double>& list, const char* option) {
    if (list.size() == 1 || list.size() == static_cast<std::size_t>(stages)) return;
    throw InputError(std::string("simulate: ") + option + " has " + std::to_string(list.size()) + " values for " +
                     std::to_string(stages) + " stages; expected one for all, or one for each");
  };
  require(command.forward, "--tf");
  require(command.input, "--tb");
  require(command.weight, "--tw");
  require(command.bytes, "--bytes");
  require(command.activation, "--activation");
  // The options' range checks let NaN pass.
  const auto require_number = [](double value, const char* option) {
    if (std::isnan(value))
      throw InputError(std::string("simulate: ") + option + " is not a number; expected one above 0");
  };
  require_number(command.bandwidth, "--bandwidth");
  require_number(command.overlap, "--overlap");
  require_number(command.hidden, "--hidden");
  schedule::StepCosts costs;
  const std::size_t entries = std::max({command.forward.size(), command.input.size(), command.weight.size()});
  costs.durations.clear();
  for (std::size_t i = 0; i < entries; ++i) {
    const int stage = static_cast<int>(i);
    costs.durations.push_back({.forward = share * schedule::of_stage(command.forward, stage),
                               .input = share * schedule::of_stage(command.input, stage),
                               .weight = share * schedule::of_stage(command.weight, stage),
                               .backward = {},
                               .comm = command.comm,
                               .gather = share * command.gather,
                               .reduce = share * command.reduce,
                               .offload = share * command.offload,
                               .reload = share * command.reload});
  }
  costs.memory.clear();
  for (double activation : command.activation) {
    costs.memory.push_back({.activation = share * activation, .weight_part = share * activation * weight_share});
  }
  costs.links.bytes = command.bytes;
  if (command.bandwidth > 0) {
    costs.links.all.bandwidth = command.bandwidth;
    costs.links.occupied = true;
  }
  costs.links.buffers = command.buffers;
  costs.first_stage_defers = command.defer;
  if (command.hidden > 0) {
    costs.group_time = schedule::hiding_shorter(command.hidden);
  } else if (command.overlap != 1) {
    costs.group_time = [factor = command.overlap](const schedule::StepCosts&, std::span<const schedule::Action>,
                                                  double sum) { return factor * sum; };
  }
  return costs;
}

/// In a table --skip counts parts of the model, one per rank; a schedule may cut a part into several stages. A skip
/// goes from the last stage of its first part to the first stage of the other.
std::vector<schedule::Skip> skips_of(const SimulateCommand& command, const schedule::Schedule& schedule,
                                     double weight_share, bool per_rank) {
  const int ranks = static_cast<int>(schedule.ranks.size()) / command.choice.replicas, stages = schedule.stages;
  if (per_rank && !command.skips.empty() && stages % ranks != 0) {
    throw InputError("simulate: --skip: " + schedule.name + " cannot be compared: its " + std::to_string(stages) +
                     " stages cannot be divided evenly among " + std::to_string(ranks) + " ranks");
  }
  const int cut = per_rank ? stages / ranks : 1;
  std::vector<schedule::Skip> skips;
  for (const SkipOption& text : parse_skips("simulate", command.skips, per_rank ? ranks : stages,
                                            per_rank ? "parts of the model, one per rank," : "stages")) {
    const schedule::StageEdge edge{(text.edge.from + 1) * cut - 1, text.edge.to * cut};
    const double bytes = text.bytes.value_or(schedule::of_stage(command.bytes, edge.from));
    skips.push_back({.edge = edge, .bytes = bytes, .weight_part = weight_share * bytes});
  }
  return skips;
}

/// Refuses a scaling without effect: a schedule of whole backwards has no W.
void require_effect(const std::string& text, const schedule::Scaling& scaling, const schedule::Schedule& compute) {
  if (!scaling.kind) return;
  std::string kinds;
  for (schedule::ActionType type :
       {schedule::ActionType::F, schedule::ActionType::B, schedule::ActionType::I, schedule::ActionType::W}) {
    const bool occurs = std::any_of(compute.ranks.begin(), compute.ranks.end(), [&](const auto& actions) {
      return std::any_of(actions.begin(), actions.end(), [&](const schedule::Action& a) { return a.type == type; });
    });
    if (occurs && type == *scaling.kind) return;
    if (occurs) (kinds += kinds.empty() ? "" : ", ") += schedule::to_string(type);
  }
  throw InputError("simulate: --scale " + text + ": " + compute.name + " has no " +
                   std::string(schedule::to_string(*scaling.kind)) + "; its actions are " + kinds);
}

/// STAGE=FACTOR, KIND=FACTOR or STAGE and KIND together: 2=0.5, W=0, 2F=1.5.
schedule::Scaling parse_scaling(const std::string& text) {
  const auto refuse = [&] {
    throw InputError("simulate: --scale " + text +
                     ": give STAGE=FACTOR, KIND=FACTOR (F, B, I or W) or both, as in 2=0.5, W=0 or 2F=1.5");
  };
  schedule::Scaling scaling;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse();
  std::string what = text.substr(0, equals);
  for (schedule::ActionType type :
       {schedule::ActionType::F, schedule::ActionType::B, schedule::ActionType::I, schedule::ActionType::W}) {
    if (what.back() != schedule::to_string(type)[0]) continue;
    scaling.kind = type;
    what.pop_back();
    break;
  }
  if (!what.empty()) {
    scaling.stage = parse_number<int>(what);
    if (!scaling.stage) refuse();
  }
  const std::optional<double> factor = parse_number<double>(std::string_view(text).substr(equals + 1));
  if (!factor) refuse();
  scaling.factor = *factor;
  return scaling;
}

/// A schedule and the costs of its step.
struct Step {
  schedule::Schedule compute;
  std::vector<schedule::StageEdge> edges;
  schedule::StepCosts costs;
};

/// The share of one stage in the times and activations that are given for its rank.
double share_of_stage(const ScheduleChoice& choice) {
  const schedule::ScheduleKind& kind = schedule::schedule_kind(choice.name);
  return 1.0 / (choice.request.stages_per_rank != 0 ? choice.request.stages_per_rank : kind.stages_per_rank);
}

/// With `per_rank`, times and activations are given for a rank, whose stages share them; otherwise for a stage.
Step prepare(const SimulateCommand& command, ScheduleChoice choice, double weight_share, bool per_rank) {
  if (choice.takes(schedule::kDurations)) {
    if (command.forward.size() + command.input.size() + command.weight.size() != 3) {
      throw InputError("simulate: " + choice.name +
                       " is generated for equal stages; give one --tf, one --tb and one --tw");
    }
    const double share = per_rank ? share_of_stage(choice) : 1;
    choice.request.durations = schedule::Durations{.forward = command.forward[0] * share,
                                                   .input = command.input[0] * share,
                                                   .weight = command.weight[0] * share,
                                                   .backward = {},
                                                   .comm = command.comm};
  }
  if (choice.takes(schedule::kWeightMemory)) choice.request.weight_memory = weight_share;
  const schedule::Schedule given = choice.load();
  Step step{.compute = without_transport(given), .edges = schedule::chain_edges(given.stages), .costs = {}};
  const double share = per_rank ? static_cast<double>(given.ranks.size()) / choice.replicas / given.stages : 1;
  step.costs = costs_of(command, given.stages, weight_share, share);
  step.costs.skips = skips_of(command, given, weight_share, per_rank);
  // The simulation ignores the schedule's transfers, so they are checked here.
  if (schedule::has_transport(given)) {
    schedule::require_valid(given, schedule::with_skips(step.edges, step.costs.skips),
                            {.forward_only = !schedule::has_backward(given)});
  }
  return step;
}

int simulate_one(const SimulateCommand& command) {
  const bool made_for_share = command.choice.takes(schedule::kWeightMemory);
  const auto [compute, edges, costs] =
      prepare(command, command.choice, command.weight_share.value_or(made_for_share ? 0.5 : 1), false);
  std::vector<schedule::Scaling> scalings;
  for (const std::string& text : command.scale) {
    scalings.push_back(parse_scaling(text));
    require_effect(text, scalings.back(), compute);
  }
  // The records of the critical path take several times the memory of the schedule.
  const bool path = command.json || schedule::action_count(compute) <= (1u << 20);
  const bool pictures = !command.trace.empty() || !command.svg.empty();
  SimulatedStep step;
  step.simulation = schedule::simulate_step(
      compute, edges, costs,
      {.trace = pictures, .transfers = !command.trace.empty(), .memory = !command.svg.empty(), .critical_path = path});
  step.bound = schedule::lower_bound(compute, edges, costs);
  step.skips = costs.skips;
  step.scalings = command.scale;
  if (!scalings.empty()) step.changes = schedule::what_if(compute, edges, costs, scalings);
  const schedule::Simulation& simulation = step.simulation;
  const std::span<const schedule::Trace> traces(&simulation.trace, 1);
  if (!command.trace.empty()) {
    write_file(command.trace,
               conformance::chrome_trace(traces, {.microseconds_per_unit = 1000, .transfers = simulation.transfers}));
  }
  if (!command.svg.empty()) {
    const std::string title = compute.name + ", " + std::to_string(compute.ranks.size()) + " ranks, " +
                              std::to_string(compute.microbatches) + " micro-batches";
    write_file(command.svg,
               conformance::timeline_svg(traces, {.title = title, .unit = "", .memory = simulation.memory}));
  }
  step.compute = compute;
  (command.json ? print_json : print_text)(step);
  return 0;
}

/// Clears the fields that other compared schedules use and this one does not.
schedule::ScheduleRequest without_unused(schedule::ScheduleRequest request, unsigned takes, unsigned taken_by_some) {
  const auto unused = [&](schedule::Takes field) { return (taken_by_some & ~takes & field) != 0; };
  if (unused(schedule::kStagesPerRank)) request.stages_per_rank = 0;
  if (unused(schedule::kGroupSize)) request.group_size = 0;
  if (unused(schedule::kSlices)) request.slices = 0;
  if (unused(schedule::kMemoryLimit)) request.memory_limit = 0;
  return request;
}

/// Compares schedules of the same model: each rank has an equal share of it, in one stage or in several.
int compare_schedules(const SimulateCommand& command, const std::vector<std::string>& names) {
  if (!command.trace.empty() || !command.svg.empty() || !command.scale.empty())
    throw InputError("simulate: --trace, --svg and --scale are for one schedule; " + command.choice.name + " matches " +
                     join(names));
  for (const auto& [list, option] : {std::pair(&command.forward, "--tf"),
                                     {&command.input, "--tb"},
                                     {&command.weight, "--tw"},
                                     {&command.bytes, "--bytes"},
                                     {&command.activation, "--activation"}}) {
    if (list->size() != 1)
      throw InputError(std::string("simulate: ") + option + " has " + std::to_string(list->size()) +
                       " values; to compare schedules give one: their stages may differ in number");
  }
  unsigned taken = schedule::kNothing;
  for (const std::string& name : names)
    if (const schedule::ScheduleKind* kind = schedule::find_schedule_kind(name)) taken |= kind->takes;
  const double weight_share = command.weight_share.value_or((taken & schedule::kWeightMemory) != 0 ? 0.5 : 1);
  std::vector<ComparedSchedule> compared;
  for (const std::string& name : names) {
    ScheduleChoice choice = command.choice;
    choice.name = name;
    const schedule::ScheduleKind* kind = schedule::find_schedule_kind(name);
    choice.request = without_unused(choice.request, kind != nullptr ? kind->takes : schedule::kNothing, taken);
    if (kind != nullptr) choice.dialect.clear();
    ComparedSchedule& row = compared.emplace_back(ComparedSchedule{.name = name});
    try {
      const Step step = prepare(command, choice, weight_share, true);
      row.stages = step.compute.stages;
      row.microbatches = step.compute.microbatches;
      row.simulation = schedule::simulate_step(step.compute, step.edges, step.costs);
    } catch (const InputError& error) {
      row.refusal = error.what();
    }
  }
  const auto refused = [](const ComparedSchedule& row) { return !row.refusal.empty(); };
  if (std::all_of(compared.begin(), compared.end(), refused)) throw InputError(compared.front().refusal);
  if (command.json)
    print_comparison_json(compared);
  else
    print_comparison(compared, weight_share, !command.skips.empty());
  return 0;
}

int simulate_command(const SimulateCommand& command) {
  const std::string& name = command.choice.name;
  if (name.empty()) {
    throw InputError(
        "simulate: give the name of a schedule or a file that ends in .csv; `plumbline schedule --list` "
        "shows the names");
  }
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(name, ignored);  // which may have any name
  if (!is_file && name.find_first_of("*?[,") != std::string::npos)
    return compare_schedules(command, conformance::expand_schedules(name));
  return simulate_one(command);
}

}  // namespace

void add_simulate(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SimulateCommand>();
  CLI::App* command = app.add_subcommand(
      "simulate",
      "Compute how long a schedule takes in theory, how large its bubble is, what limits it, and a bound that no\n"
      "order can beat. Each rank executes its actions in order; an action begins when the rank is free and its inputs\n"
      "have arrived. Times are in any one unit. tb and tw are the halves of a backward, as in the zero-bubble papers:\n"
      "tb the one for the inputs (I), tw the one for the weights (W). A schedule with whole backwards (B) takes\n"
      "tb + tw for each.\n"
      "  plumbline simulate 1f1b --ranks 8 --microbatches 24 --tf 18.522 --tb 18.086 --tw 9.337 --comm 0.601\n"
      "  plumbline simulate zb-v --ranks 4 --microbatches 8 --svg zb-v.svg --trace zb-v.json\n"
      "  plumbline simulate 1f1b --tf 1,1,1,2 --scale 3=0.5         what if stage 3 were twice as fast?\n"
      "  plumbline simulate '1f1b,zb-*' --ranks 8 --microbatches 24  several in one table\n"
      "  plumbline simulate zb-h1 --skip 0-3=2,1-2=1                tensors that skip stages, as in a U-Net\n"
      "In a table times and activations are those of a rank, whose stages share them.\n"
      "A trace opens in ui.perfetto.dev (a unit is shown as 1 ms). Some schedules (zb-auto, ...) are generated for\n"
      "the given times, which must be the same for all stages.");
  add_schedule_options(*command, options->choice);
  command->add_option("--tf", options->forward, "Time of a forward; one, or one for each stage: 1,1,2")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("1");
  command
      ->add_option("--tb,--ti", options->input,
                   "Time of the input half of a backward (I); a whole backward (B) takes tb + tw")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("1");
  command->add_option("--tw", options->weight, "Time of the weight half of a backward (W)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("1");
  command->add_option("--comm", options->comm, "Latency: from the end of an action until another rank has its result")
      ->capture_default_str();
  command
      ->add_option("--gather", options->gather,
                   "Time until a stage's parameters are gathered, once all its ranks have reached UNSHARD")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--reduce", options->reduce,
                   "Time until a stage's gradients are summed, once all its ranks have reached REDUCE_GRAD")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option(
          "--offload", options->offload,
          "Time of an OFFLOAD of a stage's activations of one micro-batch, which keep their memory until then; "
          "the transfers of a rank run one after another beside its computations")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--reload", options->reload,
                   "Time of a RELOAD, for whose end the next B, I or W of its stage and micro-batch waits")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI::Option* bandwidth =
      command
          ->add_option("--bandwidth", options->bandwidth,
                       "Bytes per unit of time, with --bytes; the messages from one rank to another then queue")
          ->check(CLI::PositiveNumber);
  CLI::Option* bytes = command->add_option("--bytes", options->bytes,
                                           "Size of a stage's output, and of its gradient; one, or one for each");
  bandwidth->needs(bytes);
  bytes->needs(bandwidth)->delimiter(',')->allow_extra_args(false)->default_str("0");
  add_skip_option(
      *command, options->skips, "FROM-TO[=BYTES]",
      "Stage TO takes a tensor of stage FROM directly from its rank, as in 0-3 or 0-3=2,1-2=1; can be given "
      "several times. It takes BYTES (default: --bytes of FROM) of the link and, in the unit of --activation, "
      "of memory until TO's backward has ended. A skip to the next stage enlarges the message that it gets "
      "anyway. In a table FROM and TO are parts of the model, one per rank");
  command
      ->add_option(
          "--buffers", options->buffers,
          "Maximum number of messages from one rank to another that are sent and not yet used; the sender of one "
          "more waits (0: no limit)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI::Option* overlap =
      command
          ->add_option("--overlap", options->overlap,
                       "Time of a group of overlapped actions, as a factor of the sum of its members")
          ->check(CLI::PositiveNumber)
          ->capture_default_str();
  command
      ->add_option(
          "--hidden", options->hidden,
          "In place of --overlap: the share of the shorter of a group's forwards and backwards that the longer "
          "hides. 0: a group takes the sum of both; 1: the longer alone")
      ->check(CLI::Range(0.0, 1.0))
      ->excludes(overlap)
      ->capture_default_str();
  command
      ->add_option("--activation", options->activation,
                   "Memory of a micro-batch's activations in a stage; one, or one for each")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("1");
  command
      ->add_option(
          "--weight-share", options->weight_share,
          "The share of --activation that is held from I to W (the zero-bubble papers' M_W / M_B); I frees the rest; "
          "zb-auto and zb-v-greedy are generated for it, by default for 0.5")
      ->check(CLI::Range(0.0, 1.0))
      ->default_str("1");
  command->add_flag("--defer-first", options->defer,
                    "Stage 0 sends no gradients: it executes its whole backward in W, as our runtime does");
  command
      ->add_option("--scale", options->scale,
                   "Also print the makespan with the times of a stage, of a kind of action, or of both multiplied: "
                   "2=0.5, W=0, 2F=1.5; can be given several times")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json,
                    "Print makespan, longest_rank, bubble_makespan, bubble_longest_rank, peak, busy, lower_bound, "
                    "critical_path and more as JSON");
  command->add_option("--trace", options->trace, "Write this Chrome trace (JSON, for Perfetto)");
  command->add_option("--svg", options->svg, "Write this picture, with the memory of each rank over time");
  command->callback([options, &chosen] { chosen = [options] { return simulate_command(*options); }; });
}

}  // namespace plumbline::cli
