#include "bench/history/google_benchmark.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace plumbline::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNanoseconds = 1e9;

bool is_time(const Figure& figure) {
  return figure.kind == Kind::Timed && figure.unit == "s" && figure.name != "cpu_time";
}

/// Names that the format itself gives to members of a repetition.
bool is_taken(const Json& repetition, const std::string& name) { return repetition.contains(name); }

void add_counters(Json& repetition, const Benchmark& benchmark, size_t index) {
  for (const Figure& figure : benchmark.figures) {
    if (is_time(figure) || figure.name == "cpu_time" || figure.samples.size() <= index) continue;
    const std::string name = is_taken(repetition, figure.name) ? figure.name + "_" : figure.name;
    repetition[name] = figure.samples[index];
  }
}

Json repetition_of(const std::string& name, size_t family, size_t index, size_t count, double real, double cpu) {
  return {{"name", name},
          {"family_index", family},
          {"per_family_instance_index", 0},
          {"run_name", name},
          {"run_type", "iteration"},
          {"repetitions", count},
          {"repetition_index", index},
          {"threads", 1},
          {"iterations", 1},
          {"real_time", real * kNanoseconds},
          {"cpu_time", cpu * kNanoseconds},
          {"time_unit", "ns"}};
}

}  // namespace

std::string google_benchmark_json(const BenchRun& run) {
  Json json = {{"context",
                {{"date", run.date},
                 {"executable", "plumbline-bench"},
                 {"library_build_type", "release"},
                 {"plumbline", run.version},
                 {"commit", run.commit + (run.modified ? "-dirty" : "")},
                 {"hardware", run.machine.hardware},
                 {"libtorch", run.machine.libtorch},
                 {"mpi", run.machine.mpi},
                 {"compiler", run.machine.compiler}}},
               {"benchmarks", Json::array()}};
  size_t family = 0;
  for (const Benchmark& benchmark : run.benchmarks) {
    const auto cpu = std::ranges::find(benchmark.figures, "cpu_time", &Figure::name);
    bool counters = true;
    for (const Figure& figure : benchmark.figures) {
      if (!is_time(figure)) continue;
      const bool has_cpu = figure.name == "real_time" && cpu != benchmark.figures.end();
      const std::string name = benchmark.name + (figure.name == "real_time" ? "" : ":" + figure.name);
      for (size_t i = 0; i < figure.samples.size(); ++i) {
        Json repetition = repetition_of(name, family, i, figure.samples.size(), figure.samples[i],
                                        has_cpu && i < cpu->samples.size() ? cpu->samples[i] : figure.samples[i]);
        if (counters) add_counters(repetition, benchmark, i);
        json["benchmarks"].push_back(std::move(repetition));
      }
      counters = false;
      ++family;
    }
    if (!counters || benchmark.figures.empty()) continue;
    size_t most = 0;
    for (const Figure& figure : benchmark.figures) most = std::max(most, figure.samples.size());
    for (size_t i = 0; i < most; ++i) {  // nothing but counters
      json["benchmarks"].push_back(repetition_of(benchmark.name, family, i, most, 0, 0));
      add_counters(json["benchmarks"].back(), benchmark, i);
    }
    ++family;
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace plumbline::bench
