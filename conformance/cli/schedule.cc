// plumbline schedule: prints the order of a schedule, and checks it.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "conformance/cli/commands.h"
#include "runtime/error.h"
#include "runtime/schedule/check.h"
#include "runtime/schedule/csv.h"
#include "runtime/schedule/generators.h"
#include "runtime/schedule/lower.h"

namespace plumbline {
namespace {

struct ScheduleOptions {
  std::string name, format = "grid";
  int ranks = 4, microbatches = 8;
};

/// A row for each rank, a column for each position.
void print_grid(const Schedule& schedule) {
  size_t width = 0;
  for (const auto& rank : schedule.ranks)
    for (const Action& action : rank) width = std::max(width, to_string(action).size());
  for (size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::printf("rank %-3zu", r);
    for (const Action& action : schedule.ranks[r])
      std::printf(" %-*s", static_cast<int>(width), to_string(action).c_str());
    std::printf("\n");
  }
}

Schedule load(const ScheduleOptions& options) {
  if (!options.name.ends_with(".csv")) return make_schedule(options.name, options.ranks, options.microbatches);
  std::ifstream in(options.name);
  if (!in) throw InputError("schedule file " + options.name + " cannot be read");
  std::stringstream text;
  text << in.rdbuf();
  return parse_csv(text.str(), options.name);
}

int print_schedule(const ScheduleOptions& options) {
  const Schedule compute = load(options);
  const std::vector<StageEdge> edges = chain_edges(compute.stages);
  require_valid(compute, edges);
  if (options.format == "grid")
    print_grid(compute);
  else
    std::fputs(to_csv(options.format == "comms" ? lower(compute, edges) : compute).c_str(), stdout);
  return 0;
}

}  // namespace

void add_schedule(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ScheduleOptions>();
  CLI::App* command = app.add_subcommand(
      "schedule",
      "Print the order in which each rank does its actions (F forward, B backward, I and W its halves), after "
      "checking\n"
      "that every action is there once and the ranks come to their ends.\n"
      "gpipe   all forwards, then all backwards: every rank holds the activations of all M micro-batches\n"
      "1f1b    the same bubble, min(M, P) activations at most (P ranks)\n"
      "zb-h1   a third of that bubble where F, I and W take equal time, and no more memory than 1f1b\n"
      "zb-h2   no rank waits once it has begun, from 2P-1 micro-batches on, for up to 2P-1 activations: faster where "
      "a\n"
      "        rank may enter the next step before the others end this one; in a step of its own as fast as zb-h1,\n"
      "        with fewer micro-batches slower");
  std::string names;
  for (const std::string& name : schedule_names()) names += (names.empty() ? "" : ", ") + name;
  command->add_option("name", options->name, "A schedule (" + names + ") or a file ending in .csv")->required();
  command->add_option("--ranks", options->ranks, "How many ranks")->check(CLI::Range(1, 16384))->capture_default_str();
  command->add_option("--microbatches", options->microbatches, "How many micro-batches")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      ->add_option("--format", options->format,
                   "grid; compute: PyTorch's CSV, as it is; comms: lowered, with transfers")
      ->check(CLI::IsMember({"grid", "compute", "comms"}))
      ->capture_default_str();
  command->callback([options, &chosen] { chosen = [options] { return print_schedule(*options); }; });
}

}  // namespace plumbline
