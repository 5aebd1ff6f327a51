#include "bench/cli/micro_figures.h"

#include <map>

#include "runtime/error.h"

namespace plumbline::bench {
namespace {

struct Counter {
  Figure figure;
  double scale = 1;  ///< from the counter to the figure's unit
};

/// Counters by their names in micro/, except those that Google Benchmark shows as times by itself.
const std::map<std::string, Counter>& counters() {
  const auto time = [](const char* name) { return Counter{{.name = name, .unit = "s"}, 1e-6}; };
  const auto ratio = [](const char* name, Better better = Better::Lower) {
    return Counter{{.name = name, .unit = "1", .better = better}};
  };
  // `wobble`: how far the counter moved between repetitions of the same program, as the order of threads did.
  const auto count = [](const char* name, const char* unit, double scale = 1, double wobble = 0) {
    return Counter{{.name = name, .unit = unit, .kind = Kind::Counted, .tolerance = wobble}, scale};
  };
  static const std::map<std::string, Counter> known = {
      {"ratio", ratio("ratio")},
      {"ratio_of_min", ratio("ratio_of_min")},
      {"halves_over_full", ratio("halves_over_full")},
      {"queued_over_full", ratio("queued_over_full")},
      {"halves_over_queued", ratio("halves_over_queued", Better::Higher)},
      {"full_us", time("full")},
      {"input_us", time("input")},
      {"weight_us", time("weight")},
      {"module_us", time("module")},
      {"module_min_us", time("module_min")},
      {"interpreter_min_us", time("interpreter_min")},
      {"halves_us", time("halves")},
      {"queued_full_us", time("queued_full")},
      {"queued_halves_us", time("queued_halves")},
      {"nodes", count("nodes", "nodes")},
      {"sent_MB", count("sent", "bytes", 1e6)},
      {"peak_MB", count("peak", "bytes", 1e6, 0.02)},
      {"peak_share", count("peak_share", "1")},
      {"bytes_per_action", count("bytes_per_action", "bytes", 1, 0.01)},
      {"per_action", count("per_action", "allocations", 1, 0.1)},
      {"torch_per_action", count("torch_per_action", "allocations", 1, 0.01)},
  };
  return known;
}

}  // namespace

std::vector<Figure> micro_figures(const benchmark::BenchmarkReporter::Run& repetition) {
  const auto iterations = static_cast<double>(std::max<int64_t>(repetition.iterations, 1));
  std::vector<Figure> figures = {
      {.name = "real_time", .unit = "s", .samples = {repetition.real_accumulated_time / iterations}}};
  if (repetition.run_name.time_type.empty())
    figures.push_back({.name = "cpu_time", .unit = "s", .samples = {repetition.cpu_accumulated_time / iterations}});
  for (const auto& [name, counter] : repetition.counters) {
    if (counter.flags & benchmark::Counter::kInvert) {
      figures.push_back(
          {.name = name.starts_with("ns_") ? name.substr(3) : name, .unit = "s", .samples = {counter.value}});
      continue;
    }
    const auto known = counters().find(name);
    if (known == counters().end())
      throw Error("the counter " + name + " of " + repetition.benchmark_name() +
                  " has no unit; bench/cli/micro_figures.cc has the list");
    figures.push_back(known->second.figure);
    figures.back().samples = {known->second.scale * counter.value};
  }
  return figures;
}

}  // namespace plumbline::bench
