#include "conformance/cli/schedule/simulate_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/text/significant.h"

namespace plumbline::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

void print(const OrderedJson& json) {
  // A file's name need not be UTF-8.
  std::printf("%s\n", json.dump(2, ' ', false, OrderedJson::error_handler_t::replace).c_str());
}

OrderedJson to_json(const schedule::PathStep& step) {
  static constexpr const char* names[] = {"action", "transfer", "queue", "host", "operation", "buffer"};
  OrderedJson json = {{"kind", names[static_cast<std::size_t>(step.kind)]},
                      {"action", schedule::to_string(step.action)},
                      {"rank", step.rank}};
  if (step.kind != schedule::PathStep::Kind::Action) json["to_rank"] = step.to_rank;
  json["begin"] = step.begin;
  json["end"] = step.end;
  return json;
}

/// One sentence: the time on the critical path by kind of action, the rank with most of it, the rank that idles most.
std::string limits(const schedule::Simulation& simulation) {
  if (simulation.critical_path.empty()) return "(No critical path for so many actions; --json has it.)";
  const schedule::Timeline& t = simulation.timeline;
  std::array<double, 4> compute{};
  double travel = 0, shared = 0, hosts = 0;
  std::vector<double> by_rank(t.busy.size());
  for (const schedule::PathStep& step : simulation.critical_path) {
    if (step.kind == schedule::PathStep::Kind::Action) {
      if (schedule::is_compute(step.action.type))
        compute[static_cast<std::size_t>(step.action.type)] += step.end - step.begin;
      by_rank[step.rank] += step.end - step.begin;
    } else {
      double& kind = step.kind == schedule::PathStep::Kind::Operation      ? shared
                     : step.kind == schedule::PathStep::Kind::HostTransfer ? hosts
                                                                           : travel;
      kind += step.end - step.begin;
    }
  }
  std::string kinds;
  for (std::size_t i = 0; i < compute.size(); ++i) {
    if (compute[i] > 0)
      kinds +=
          significant(compute[i], 6) + " of " + std::string(schedule::to_string(schedule::action_types()[i])) + ", ";
  }
  const auto most = std::max_element(by_rank.begin(), by_rank.end()) - by_rank.begin();
  const auto idlest = std::min_element(t.busy.begin(), t.busy.end()) - t.busy.begin();
  return "The step is as long as a chain of " + std::to_string(simulation.critical_path.size()) + " pieces: " + kinds +
         (hosts > 0 ? significant(hosts, 6) + " of offloads and reloads, " : "") +
         (shared > 0 ? significant(shared, 6) + " of gathered parameters and summed gradients, " : "") + "and " +
         significant(travel, 6) + " of transfers; rank " + std::to_string(most) + " has most of it (" +
         significant(by_rank[most], 6) + "), rank " + std::to_string(idlest) + " idles most (" +
         significant(t.makespan - t.busy[idlest], 6) + ").";
}

double most(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

}  // namespace

void print_json(const SimulatedStep& step) {
  const schedule::Timeline& t = step.simulation.timeline;
  OrderedJson json = {{"schedule", step.compute.name},
                      {"ranks", step.compute.ranks.size()},
                      {"stages", step.compute.stages},
                      {"microbatches", step.compute.microbatches},
                      {"makespan", t.makespan},
                      {"longest_rank", t.longest_rank},
                      {"bubble_makespan", t.bubble_makespan},
                      {"bubble_longest_rank", t.bubble_longest_rank},
                      {"peak", t.peak_live},
                      {"peak_memory", step.simulation.peak_memory},
                      {"busy", t.busy},
                      {"begin", t.begin},
                      {"end", t.end},
                      {"lower_bound", step.bound.makespan},
                      {"lower_bound_reason", step.bound.reason}};
  for (const schedule::Skip& skip : step.skips) {
    json["skips"].push_back({{"from", skip.edge.from}, {"to", skip.edge.to}, {"bytes", skip.bytes}});
  }
  json["critical_path"] = OrderedJson::array();
  for (const schedule::PathStep& piece : step.simulation.critical_path) json["critical_path"].push_back(to_json(piece));
  json["scaled"] = OrderedJson::array();
  for (std::size_t i = 0; i < step.changes.size(); ++i) {
    json["scaled"].push_back({{"scale", step.scalings[i]},
                              {"makespan", step.changes[i].after},
                              {"change", step.changes[i].after - step.changes[i].before},
                              {"sensitivity", step.changes[i].sensitivity}});
  }
  print(json);
}

void print_text(const SimulatedStep& step) {
  const schedule::Timeline& t = step.simulation.timeline;
  std::string skips;
  for (const schedule::Skip& skip : step.skips) {
    skips += (skips.empty() ? "; skips " : ", ") + std::to_string(skip.edge.from) + "-" + std::to_string(skip.edge.to) +
             "=" + significant(skip.bytes, 6);
  }
  std::printf("%s: %zu ranks, %d stages, %d micro-batches%s\n\n", step.compute.name.c_str(), step.compute.ranks.size(),
              step.compute.stages, step.compute.microbatches, skips.c_str());
  std::printf("makespan      %-12s bubble %5.2f %%   of the whole step\n", significant(t.makespan, 6).c_str(),
              100 * t.bubble_makespan);
  std::printf("longest rank  %-12s bubble %5.2f %%   where ranks may enter the next step before others end this one\n",
              significant(t.longest_rank, 6).c_str(), 100 * t.bubble_longest_rank);
  std::printf("lower bound   %-12s %s\n\n", significant(step.bound.makespan, 6).c_str(), step.bound.reason.c_str());
  std::printf("rank  begin        end          busy         idle     activations  memory\n");
  constexpr std::size_t most_rows = 64;
  for (std::size_t rank = 0; rank < std::min(t.busy.size(), most_rows); ++rank) {
    std::printf("%-5zu %-12s %-12s %-12s %5.2f %%  %-12d %s\n", rank, significant(t.begin[rank], 6).c_str(),
                significant(t.end[rank], 6).c_str(), significant(t.busy[rank], 6).c_str(),
                100 * (1 - t.busy[rank] / t.makespan), t.peak_live[rank],
                significant(step.simulation.peak_memory[rank], 6).c_str());
  }
  if (t.busy.size() > most_rows) std::printf("(%zu more ranks; --json has all)\n", t.busy.size() - most_rows);
  std::printf("\n%s\n", limits(step.simulation).c_str());
  for (std::size_t i = 0; i < step.changes.size(); ++i) {
    const double change = step.changes[i].after - step.changes[i].before;
    std::printf("With --scale %s: makespan %s (%s%s), sensitivity %.3f\n", step.scalings[i].c_str(),
                significant(step.changes[i].after, 6).c_str(), change >= 0 ? "+" : "", significant(change, 6).c_str(),
                step.changes[i].sensitivity);
  }
}

void print_comparison_json(const std::vector<ComparedSchedule>& compared) {
  OrderedJson all = OrderedJson::array();
  for (const ComparedSchedule& one : compared) {
    if (!one.refusal.empty()) {
      all.push_back({{"schedule", one.name}, {"refused", one.refusal}});
      continue;
    }
    const schedule::Timeline& t = one.simulation.timeline;
    all.push_back({{"schedule", one.name},
                   {"ranks", t.busy.size()},
                   {"stages", one.stages},
                   {"microbatches", one.microbatches},
                   {"makespan", t.makespan},
                   {"longest_rank", t.longest_rank},
                   {"bubble_makespan", t.bubble_makespan},
                   {"bubble_longest_rank", t.bubble_longest_rank},
                   {"peak_memory", most(one.simulation.peak_memory)}});
  }
  print(all);
}

void print_comparison(const std::vector<ComparedSchedule>& compared, double weight_share, bool skipping) {
  std::size_t width = 8;
  for (const ComparedSchedule& one : compared) width = std::max(width, one.name.size());
  const int name_width = static_cast<int>(width);
  std::printf("%-*s  ranks  stages  micro-batches  makespan    bubble   longest rank  bubble   memory\n", name_width,
              "schedule");
  for (const ComparedSchedule& one : compared) {
    if (!one.refusal.empty()) {
      std::printf("%-*s  %s\n", name_width, one.name.c_str(), one.refusal.c_str());
      continue;
    }
    const schedule::Timeline& t = one.simulation.timeline;
    std::printf("%-*s  %-5zu  %-6d  %-13d  %-10s  %5.2f %%  %-12s  %5.2f %%  %s\n", name_width, one.name.c_str(),
                t.busy.size(), one.stages, one.microbatches, significant(t.makespan, 6).c_str(),
                100 * t.bubble_makespan, significant(t.longest_rank, 6).c_str(), 100 * t.bubble_longest_rank,
                significant(most(one.simulation.peak_memory), 6).c_str());
  }
  std::printf(
      "\nTimes and activations are those of a rank; its stages share them equally. Bubble: of the whole step; of the "
      "longest\nrank, where ranks may enter the next step before others end this one. Memory: the most that a rank "
      "holds, where the\nshare of a micro-batch's activations that is held from I to W is %s (--weight-share).\n",
      significant(weight_share, 6).c_str());
  if (skipping) {
    std::printf(
        "Skips: between parts of the model, as many as ranks; from the last stage of a part to the first of "
        "another.\n");
  }
}

}  // namespace plumbline::cli
