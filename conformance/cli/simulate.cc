// plumbline simulate: how long a schedule takes, what limits it, and pictures of it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "conformance/cli/commands.h"
#include "conformance/cli/schedule_options.h"
#include "conformance/report/chrome_trace.h"
#include "conformance/report/timeline_svg.h"
#include "conformance/report/write_text.h"
#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/simulation/lower_bound.h"
#include "runtime/schedule/simulation/what_if.h"

namespace plumbline {
namespace {

struct SimulateCommand {
  ScheduleChoice choice;
  std::vector<double> forward = {1}, input = {1}, weight = {1}, bytes = {0}, activation = {1};
  double comm = 0, bandwidth = 0, overlap = 1;
  std::optional<double> weight_share;  ///< not given: 1, or what an order made for one is made for
  int buffers = 0;
  bool defer = false, json = false;
  std::vector<std::string> scale;
  std::string trace, svg;
};

std::string number(double value) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

/// One for all or one per stage out of lists that may each be either.
StepCosts costs_of(const SimulateCommand& command, int stages, double weight_share) {
  const auto require = [&](const std::vector<double>& list, const char* option) {
    if (list.size() == 1 || list.size() == static_cast<std::size_t>(stages)) return;
    throw InputError(std::string("simulate: ") + option + " has " + std::to_string(list.size()) + " values for " +
                     std::to_string(stages) + " stages; one for all or one for each is needed");
  };
  require(command.forward, "--tf");
  require(command.input, "--tb");
  require(command.weight, "--tw");
  require(command.bytes, "--bytes");
  require(command.activation, "--activation");
  // What the option's own check lets through.
  const auto require_number = [](double value, const char* option) {
    if (std::isnan(value))
      throw InputError(std::string("simulate: ") + option + " is no number; one above 0 is needed");
  };
  require_number(command.bandwidth, "--bandwidth");
  require_number(command.overlap, "--overlap");
  StepCosts costs;
  const std::size_t entries = std::max({command.forward.size(), command.input.size(), command.weight.size()});
  costs.durations.clear();
  for (std::size_t i = 0; i < entries; ++i) {
    const int stage = static_cast<int>(i);
    costs.durations.push_back({.forward = of_stage(command.forward, stage),
                               .input = of_stage(command.input, stage),
                               .weight = of_stage(command.weight, stage),
                               .backward = {},
                               .comm = command.comm});
  }
  costs.memory.clear();
  for (double activation : command.activation) {
    costs.memory.push_back({.activation = activation, .weight_part = activation * weight_share});
  }
  costs.links.bytes = command.bytes;
  if (command.bandwidth > 0) {
    costs.links.all.bandwidth = command.bandwidth;
    costs.links.occupied = true;
  }
  costs.links.buffers = command.buffers;
  costs.first_stage_defers = command.defer;
  if (command.overlap != 1) {
    costs.group_time = [factor = command.overlap](std::span<const Action>, double sum) { return factor * sum; };
  }
  return costs;
}

/// A schedule of whole backwards has no W to be scaled.
void require_effect(const std::string& text, const Scaling& scaling, const Schedule& compute) {
  if (!scaling.kind) return;
  std::string kinds;
  for (ActionType type : {ActionType::F, ActionType::B, ActionType::I, ActionType::W}) {
    const bool occurs = std::any_of(compute.ranks.begin(), compute.ranks.end(), [&](const auto& actions) {
      return std::any_of(actions.begin(), actions.end(), [&](const Action& a) { return a.type == type; });
    });
    if (occurs && type == *scaling.kind) return;
    if (occurs) (kinds += kinds.empty() ? "" : ", ") += to_string(type);
  }
  throw InputError("simulate: --scale " + text + ": " + compute.name + " has no " +
                   std::string(to_string(*scaling.kind)) + "; its actions are " + kinds);
}

/// STAGE=FACTOR, KIND=FACTOR or STAGE and KIND together: 2=0.5, W=0, 2F=1.5.
Scaling parse_scaling(const std::string& text) {
  const auto refuse = [&] {
    throw InputError("simulate: --scale " + text +
                     ": give STAGE=FACTOR, KIND=FACTOR (F, B, I or W) or both, as in 2=0.5, W=0 or 2F=1.5");
  };
  Scaling scaling;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse();
  std::string what = text.substr(0, equals);
  for (ActionType type : {ActionType::F, ActionType::B, ActionType::I, ActionType::W}) {
    if (what.back() != to_string(type)[0]) continue;
    scaling.kind = type;
    what.pop_back();
    break;
  }
  try {
    std::size_t used = 0;
    if (!what.empty()) {
      scaling.stage = std::stoi(what, &used);
      if (used != what.size()) refuse();
    }
    const std::string factor = text.substr(equals + 1);
    scaling.factor = std::stod(factor, &used);
    if (used != factor.size()) refuse();
  } catch (const std::logic_error&) {  // what stoi and stod throw
    refuse();
  }
  return scaling;
}

nlohmann::ordered_json to_json(const PathStep& step) {
  static constexpr const char* names[] = {"action", "transfer", "queue", "buffer"};
  nlohmann::ordered_json json = {
      {"kind", names[static_cast<std::size_t>(step.kind)]}, {"action", to_string(step.action)}, {"rank", step.rank}};
  if (step.kind != PathStep::Kind::Action) json["to_rank"] = step.to_rank;
  json["begin"] = step.begin;
  json["end"] = step.end;
  return json;
}

void print_json(const Schedule& compute, const Simulation& simulation, const LowerBound& bound,
                const std::vector<std::string>& scalings, const std::vector<WhatIf>& changes) {
  const Timeline& t = simulation.timeline;
  nlohmann::ordered_json json = {{"schedule", compute.name},
                                 {"ranks", compute.ranks.size()},
                                 {"stages", compute.stages},
                                 {"microbatches", compute.microbatches},
                                 {"makespan", t.makespan},
                                 {"longest_rank", t.longest_rank},
                                 {"bubble_makespan", t.bubble_makespan},
                                 {"bubble_longest_rank", t.bubble_longest_rank},
                                 {"peak", t.peak_live},
                                 {"peak_memory", simulation.peak_memory},
                                 {"busy", t.busy},
                                 {"begin", t.begin},
                                 {"end", t.end},
                                 {"lower_bound", bound.makespan},
                                 {"lower_bound_reason", bound.reason}};
  json["critical_path"] = nlohmann::ordered_json::array();
  for (const PathStep& step : simulation.critical_path) json["critical_path"].push_back(to_json(step));
  json["scaled"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < changes.size(); ++i) {
    json["scaled"].push_back({{"scale", scalings[i]},
                              {"makespan", changes[i].after},
                              {"change", changes[i].after - changes[i].before},
                              {"sensitivity", changes[i].sensitivity}});
  }
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

/// What of the step is spent on the critical path with what, and who stands still most.
std::string limits(const Simulation& simulation) {
  if (simulation.critical_path.empty()) return "(No critical path for so many actions; --json has it.)";
  const Timeline& t = simulation.timeline;
  std::array<double, 4> compute{};
  double travel = 0;
  std::vector<double> by_rank(t.busy.size());
  for (const PathStep& step : simulation.critical_path) {
    if (step.kind == PathStep::Kind::Action) {
      compute[static_cast<std::size_t>(step.action.type)] += step.end - step.begin;
      by_rank[step.rank] += step.end - step.begin;
    } else {
      travel += step.end - step.begin;
    }
  }
  std::string kinds;
  for (std::size_t i = 0; i < compute.size(); ++i) {
    if (compute[i] > 0) kinds += number(compute[i]) + " of " + std::string(to_string(action_types()[i])) + ", ";
  }
  const auto most = std::max_element(by_rank.begin(), by_rank.end()) - by_rank.begin();
  const auto idlest = std::min_element(t.busy.begin(), t.busy.end()) - t.busy.begin();
  return "The step is as long as a chain of " + std::to_string(simulation.critical_path.size()) + " pieces: " + kinds +
         "and " + number(travel) + " of transfers; rank " + std::to_string(most) + " has most of it (" +
         number(by_rank[most]) + "), rank " + std::to_string(idlest) + " idles most (" +
         number(t.makespan - t.busy[idlest]) + ").";
}

void print_text(const Schedule& compute, const Simulation& simulation, const LowerBound& bound,
                const std::vector<std::string>& scalings, const std::vector<WhatIf>& changes) {
  const Timeline& t = simulation.timeline;
  std::printf("%s: %zu ranks, %d stages, %d micro-batches\n\n", compute.name.c_str(), compute.ranks.size(),
              compute.stages, compute.microbatches);
  std::printf("makespan      %-12s bubble %5.2f %%   of the whole step\n", number(t.makespan).c_str(),
              100 * t.bubble_makespan);
  std::printf("longest rank  %-12s bubble %5.2f %%   where ranks may enter the next step before others end this one\n",
              number(t.longest_rank).c_str(), 100 * t.bubble_longest_rank);
  std::printf("lower bound   %-12s %s\n\n", number(bound.makespan).c_str(), bound.reason.c_str());
  std::printf("rank  begin        end          busy         idle     activations  memory\n");
  constexpr std::size_t most_rows = 64;
  for (std::size_t rank = 0; rank < std::min(t.busy.size(), most_rows); ++rank) {
    std::printf("%-5zu %-12s %-12s %-12s %5.2f %%  %-12d %s\n", rank, number(t.begin[rank]).c_str(),
                number(t.end[rank]).c_str(), number(t.busy[rank]).c_str(), 100 * (1 - t.busy[rank] / t.makespan),
                t.peak_live[rank], number(simulation.peak_memory[rank]).c_str());
  }
  if (t.busy.size() > most_rows) std::printf("(%zu more ranks; --json has all)\n", t.busy.size() - most_rows);
  std::printf("\n%s\n", limits(simulation).c_str());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const double change = changes[i].after - changes[i].before;
    std::printf("With --scale %s: makespan %s (%s%s), sensitivity %.3f\n", scalings[i].c_str(),
                number(changes[i].after).c_str(), change >= 0 ? "+" : "", number(change).c_str(),
                changes[i].sensitivity);
  }
}

int simulate_schedule(const SimulateCommand& command) {
  if (command.choice.name.empty()) {
    throw InputError(
        "simulate: give the name of a schedule or a file that ends in .csv; `plumbline schedule --list` "
        "shows the names");
  }
  ScheduleChoice choice = command.choice;
  if (choice.takes(kDurations)) {
    if (command.forward.size() + command.input.size() + command.weight.size() != 3) {
      throw InputError("simulate: " + choice.name +
                       " is made to measure for stages that are equal; give one --tf, one --tb and one --tw");
    }
    choice.request.durations = Durations{.forward = command.forward[0],
                                         .input = command.input[0],
                                         .weight = command.weight[0],
                                         .backward = {},
                                         .comm = command.comm};
  }
  const bool made_for_share = choice.takes(kWeightMemory);
  const double weight_share = command.weight_share.value_or(made_for_share ? 0.5 : 1);
  if (made_for_share) choice.request.weight_memory = weight_share;
  const Schedule given = choice.load();
  const std::vector<StageEdge> edges = chain_edges(given.stages);
  // Its transfers are left out below, so this is where they are looked at.
  if (has_communication(given)) require_valid(given, edges, {.forward_only = !has_backward(given)});
  const Schedule compute = without_communication(given);
  const StepCosts costs = costs_of(command, compute.stages, weight_share);
  std::vector<Scaling> scalings;
  for (const std::string& text : command.scale) {
    scalings.push_back(parse_scaling(text));
    require_effect(text, scalings.back(), compute);
  }
  // What the path is made from takes several times as much memory as the schedule.
  const bool path = command.json || action_count(compute) <= (1u << 20);
  const bool pictures = !command.trace.empty() || !command.svg.empty();
  const Simulation simulation = simulate_step(
      compute, edges, costs,
      {.trace = pictures, .transfers = !command.trace.empty(), .memory = !command.svg.empty(), .critical_path = path});
  const LowerBound bound = lower_bound(compute, edges, costs);
  std::vector<WhatIf> changes;
  if (!scalings.empty()) changes = what_if(compute, edges, costs, scalings);
  const std::span<const Trace> traces(&simulation.trace, 1);
  if (!command.trace.empty()) {
    write_text_file(command.trace,
                    chrome_trace(traces, {.microseconds_per_unit = 1000, .transfers = simulation.transfers}));
  }
  if (!command.svg.empty()) {
    const std::string title = compute.name + ", " + std::to_string(compute.ranks.size()) + " ranks, " +
                              std::to_string(compute.microbatches) + " micro-batches";
    write_text_file(command.svg, timeline_svg(traces, {.title = title, .unit = "", .memory = simulation.memory}));
  }
  (command.json ? print_json : print_text)(compute, simulation, bound, command.scale, changes);
  return 0;
}

}  // namespace

void add_simulate(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SimulateCommand>();
  CLI::App* command = app.add_subcommand(
      "simulate",
      "Say how long a schedule takes in theory, how large its bubble is, what limits it and what no order could beat.\n"
      "Each rank does its actions in order; one begins when the rank is free and all it needs is there.\n"
      "Times are in any one unit. tb and tw are the two halves of a backward, as in the zero-bubble papers: tb the "
      "one\n"
      "for the inputs (I), tw the one for the weights (W). A schedule with whole backwards (B) takes tb + tw for "
      "each.\n"
      "  plumbline simulate 1f1b --ranks 8 --microbatches 24 --tf 18.522 --tb 18.086 --tw 9.337 --comm 0.601\n"
      "  plumbline simulate zb-v --ranks 4 --microbatches 8 --svg zb-v.svg --trace zb-v.json\n"
      "  plumbline simulate 1f1b --tf 1,1,1,2 --scale 3=0.5         what if stage 3 were twice as fast?\n"
      "A trace opens in ui.perfetto.dev (a unit is shown as 1 ms). Schedules made to measure (zb-auto, ...) are made\n"
      "for the times given, which must be the same for all stages.");
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
  CLI::Option* bandwidth =
      command
          ->add_option("--bandwidth", options->bandwidth,
                       "Bytes in a unit of time, with --bytes; the messages from one rank to another then wait for one "
                       "another")
          ->check(CLI::PositiveNumber);
  CLI::Option* bytes = command->add_option("--bytes", options->bytes,
                                           "Size of what a stage sends on, and of its gradient; one, or for each");
  bandwidth->needs(bytes);
  bytes->needs(bandwidth)->delimiter(',')->allow_extra_args(false)->default_str("0");
  command
      ->add_option("--buffers", options->buffers,
                   "Messages from one rank to another that may be sent and not yet used; before one more the sender "
                   "waits (0: any number)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--overlap", options->overlap,
                   "What a group of overlapped actions takes, as a factor of the sum of its members")
      ->check(CLI::PositiveNumber)
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
          "The share of it that is held from I to W (the zero-bubble papers' M_W / M_B); the rest goes with I; "
          "zb-auto and zb-v-greedy are made for it, and by default for 0.5")
      ->check(CLI::Range(0.0, 1.0))
      ->default_str("1");
  command->add_flag("--defer-first", options->defer,
                    "Stage 0 sends no gradients: it does its whole backward in W, as our runtime does");
  command
      ->add_option("--scale", options->scale,
                   "Also say what the step would take with a stage's times, a kind's, or both multiplied: 2=0.5, "
                   "W=0, 2F=1.5; can be given several times")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json,
                    "Print makespan, longest_rank, bubble_makespan, bubble_longest_rank, peak, busy, lower_bound, "
                    "critical_path and more as JSON");
  command->add_option("--trace", options->trace, "Write this Chrome trace (JSON, for Perfetto)");
  command->add_option("--svg", options->svg, "Write this picture, with the memory of each rank over time");
  command->callback([options, &chosen] { chosen = [options] { return simulate_schedule(*options); }; });
}

}  // namespace plumbline
