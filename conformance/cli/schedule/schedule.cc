// plumbline schedule: prints, draws and checks the order of a schedule.
#include <algorithm>
#include <cstdio>

#include "conformance/cli/commands.h"
#include "conformance/cli/options/skip_option.h"
#include "conformance/cli/schedule/lowering_options.h"
#include "conformance/cli/schedule/schedule_options.h"
#include "conformance/report/svg/schedule_grid.h"
#include "conformance/report/svg/timeline_svg.h"
#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/check/liveness.h"
#include "runtime/schedule/simulation/simulation.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/text/counted.h"

namespace plumbline::cli {
namespace {

struct ScheduleOptions {
  ScheduleChoice choice;
  LoweringChoice lowering;
  std::vector<std::string> skips;
  std::string format;
  bool list = false, check = false;
};

/// Text broken between words into lines of at most 78 characters, each with `indent` before it.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string lines, line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > 78) {
      lines += indent + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return lines + indent + line + "\n";
}

int print_list() {
  for (const schedule::ScheduleKind& kind : schedule::schedule_kinds()) {
    const auto text = [](std::string_view view) { return std::string(view); };
    std::string entry = text(kind.name) + "\n" + wrapped(text(kind.summary), "    ");
    entry += wrapped("placement: " + text(kind.placement), "    ");
    entry += wrapped("constraints: " + text(kind.constraints), "    ");
    entry += wrapped("source: " + text(kind.source), "    ");
    std::fputs((entry + "\n").c_str(), stdout);
  }
  return 0;
}

schedule::Records trace_only() { return {.trace = true, .transfers = false, .memory = false, .critical_path = false}; }

schedule::Simulation in_unit_time(const schedule::Schedule& compute, const std::vector<schedule::StageEdge>& edges,
                                  const schedule::Records& records) {
  return schedule::simulate_step(compute, edges, {}, records);
}

/// The edges of the chain of stages, and those of the skips.
std::vector<schedule::StageEdge> edges_of(const schedule::Schedule& schedule, const std::vector<std::string>& skips) {
  std::vector<schedule::Skip> skipping;
  for (const SkipOption& skip : parse_skips("schedule", skips, schedule.stages)) {
    if (skip.bytes) {
      throw InputError("schedule: --skip " + skip.text +
                       ": the order does not depend on bytes; give FROM-TO here and the bytes to plumbline simulate");
    }
    skipping.push_back({.edge = skip.edge});
  }
  return schedule::with_skips(schedule::chain_edges(schedule.stages), skipping);
}

int print_grid(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges) {
  const bool lowered = schedule::has_transport(schedule);
  const schedule::Schedule compute = without_communication(schedule);
  const schedule::Simulation simulation = in_unit_time(compute, edges, trace_only());
  std::fputs(conformance::schedule_grid(simulation.trace).c_str(), stdout);
  bool whole = false, halves = false, grouped = false;
  for (const auto& actions : compute.ranks) {
    for (const schedule::Action& action : actions) {
      whole = whole || action.type == schedule::ActionType::B;
      halves = halves || action.type == schedule::ActionType::I;
      grouped = grouped || action.overlaps_next;
    }
  }
  std::string legend = "2F0: forward of stage 2 for micro-batch 0, a slot";
  if (whole) legend += "; B: backward, two slots";
  if (halves) legend += "; I, W: input and weight backward, a slot each";
  if (grouped) legend += "; &: overlaps with the next action";
  legend += "; .: bubble";
  if (lowered) legend += " (transfers take no time here; --format comms prints them)";
  std::printf("\n%s\n", legend.c_str());
  return 0;
}

std::string peaks_of(const schedule::Schedule& compute, const std::vector<schedule::StageEdge>& edges) {
  std::string text;
  const std::vector<int> peaks = schedule::has_backward(compute) ? schedule::peak_live(compute)
                                                                 : in_unit_time(compute, edges, {}).timeline.peak_live;
  const std::size_t shown = std::min<std::size_t>(peaks.size(), 32);
  for (std::size_t rank = 0; rank < shown; ++rank) text += " " + std::to_string(peaks[rank]);
  if (shown < peaks.size()) {
    text += " ... (at most " + std::to_string(*std::max_element(peaks.begin(), peaks.end())) + ")";
  }
  return text;
}

/// Prints a line for each proven property. Returns 1 if one does not hold.
int check(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges, LoweringChoice lowering,
          std::size_t skips) {
  if (schedule::has_offload(schedule)) lowering.by = "engine";  // PyTorch's has none
  const bool given_lowered = schedule::has_transport(schedule);
  const schedule::CheckOptions options{.forward_only = !schedule::has_backward(schedule), .lowered = given_lowered};
  const std::vector<std::string> found = schedule::violations(schedule, edges, options);
  for (const std::string& violation : found) std::printf("broken  %s\n", violation.c_str());
  if (!found.empty()) return 1;

  const schedule::Schedule compute = without_communication(schedule);
  const schedule::Schedule lowered = given_lowered ? schedule : lowering.lower(schedule, edges);
  const std::vector<std::string> unpaired = schedule::violations(lowered, edges, options);
  for (const std::string& violation : unpaired) std::printf("broken  lowered: %s\n", violation.c_str());
  if (!unpaired.empty()) return 1;
  std::size_t sends = 0, computations = 0;
  for (const auto& actions : lowered.ranks) {
    sends += static_cast<std::size_t>(std::count_if(
        actions.begin(), actions.end(), [](const schedule::Action& a) { return schedule::is_send(a.type); }));
    computations += static_cast<std::size_t>(
        std::ranges::count_if(actions, [](const schedule::Action& a) { return schedule::is_compute(a.type); }));
  }
  std::printf("proven  every action once: %zu computations of %d stages and %d micro-batches on %zu ranks\n",
              computations, compute.stages, compute.microbatches, compute.ranks.size());
  std::printf("proven  dependencies: every value is computed before it is used, on each rank and between ranks%s\n",
              skips > 0 ? (", " + counted(skips, "skip") + " included").c_str() : "");
  std::printf("proven  pairing: each of %zu sends has its receive%s\n", sends,
              given_lowered ? "" : (" (lowered as by " + lowering.by + ")").c_str());
  std::printf("proven  no deadlock if sends do not block and complete with their receive (rendezvous)\n");
  constexpr int most_buffers = 8;
  const std::optional<int> fewest = schedule::fewest_buffers(lowered, edges, most_buffers);
  if (fewest) {
    std::printf("proven  blocking sends: runs with %s a channel%s (free again when the receive is posted)\n",
                counted(*fewest, "buffer").c_str(), *fewest > 0 ? " and with no fewer" : "");
  } else {
    std::printf("note    blocking sends: stops with up to %d buffers a channel\n", most_buffers);
  }
  const std::vector<std::string> disorder = schedule::channel_order_violations(lowered, edges);
  if (disorder.empty()) {
    std::printf("proven  channel order: messages are received in the order of sending; no tags are needed\n");
  } else {
    std::printf("note    channel order: messages need tags on %zu channels, the first: %s\n", disorder.size(),
                disorder.front().c_str());
  }
  std::printf("proven  activations held at once, by rank:%s\n", peaks_of(compute, edges).c_str());
  return 0;
}

int print_schedule(const ScheduleOptions& options) {
  if (options.list) return print_list();
  if (options.choice.name.empty()) {
    throw InputError("schedule: give the name of a schedule or a file that ends in .csv; --list shows the names");
  }
  const schedule::Schedule schedule = options.choice.load();
  const std::vector<schedule::StageEdge> edges = edges_of(schedule, options.skips);
  if (options.check) {
    const int code = check(schedule, edges, options.lowering, options.skips.size());
    if (code != 0 || options.format.empty()) return code;
    std::printf("\n");
  } else {
    schedule::require_valid(schedule, edges, {.forward_only = !schedule::has_backward(schedule)});
  }
  const std::string& format = options.format;
  if (format.empty() || format == "grid") return print_grid(schedule, edges);
  const bool lowered = schedule::has_transport(schedule);
  const schedule::Schedule compute = without_communication(schedule);
  if (format == "svg") {
    const schedule::Trace trace = in_unit_time(compute, edges, trace_only()).trace;
    const std::string title = compute.name + ", " + std::to_string(compute.ranks.size()) + " ranks, " +
                              std::to_string(compute.microbatches) + " micro-batches";
    std::fputs(conformance::timeline_svg({&trace, 1}, {.title = title, .unit = "", .memory = {}}).c_str(), stdout);
    return 0;
  }
  if (format == "compute") {
    std::fputs(schedule::to_csv(compute).c_str(), stdout);
  } else if (lowered) {
    std::fputs(schedule::to_csv(schedule).c_str(), stdout);
  } else {
    std::fputs(schedule::to_csv(options.lowering.lower(schedule, edges)).c_str(), stdout);
  }
  return 0;
}

}  // namespace

void add_schedule(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ScheduleOptions>();
  CLI::App* command = app.add_subcommand(
      "schedule",
      "Print the order in which each rank executes its actions: F forward, B backward, I and W its halves (for the\n"
      "inputs and for the weights). 2F0 is the forward of stage 2 for micro-batch 0. A schedule that cannot run is\n"
      "not printed; --check tells why.\n"
      "  plumbline schedule --list                                 all names, with uses, limits and sources\n"
      "  plumbline schedule 1f1b --ranks 4 --microbatches 8        as a grid in units of time, dots are the bubble\n"
      "  plumbline schedule zb-v --format svg > zb-v.svg           as a picture\n"
      "  plumbline schedule mine.csv --check                       the properties of a custom schedule\n"
      "  plumbline schedule 1f1b --skip 0-3,1-2 --check            ... with tensors that skip stages, as in a U-Net\n"
      "For its duration with other times than F = I = W: plumbline simulate.");
  add_schedule_options(*command, options->choice);
  command->add_flag("--list", options->list, "Print each schedule's name, what it is good for, its limits and sources");
  command
      ->add_option("--format", options->format,
                   "grid: slots of time (the default); svg: a picture; compute: PyTorch's CSV of the computations; "
                   "comms: lowered, with sends and receives (--lowering chooses how); a lowered file is unchanged")
      ->check(CLI::IsMember({"grid", "compute", "comms", "svg"}));
  command->add_flag("--check", options->check,
                    "Print each proven property, or each violation (exit code 1); with --format also the schedule");
  add_skip_option(*command, options->skips, "FROM-TO",
                  "Stage TO takes a tensor of stage FROM directly from its rank, as in 0-3 or 0-3,1-2; can be given "
                  "several times. A skip to the next stage joins the message that it gets anyway");
  add_lowering_options(*command, options->lowering);
  command->callback([options, &chosen] { chosen = [options] { return print_schedule(*options); }; });
}

}  // namespace plumbline::cli
