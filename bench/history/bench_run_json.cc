#include "bench/history/bench_run_json.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/error.h"
#include "runtime/io/gzip.h"
#include "runtime/io/json_place.h"
#include "runtime/io/write_file.h"

namespace plumbline::bench {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Figure& figure) {
  Json json = {{"name", figure.name},
               {"unit", figure.unit},
               {"kind", figure.kind == Kind::Timed ? "timed" : "counted"},
               {"better", figure.better == Better::Lower ? "lower" : "higher"}};
  if (figure.tolerance > 0) json["tolerance"] = figure.tolerance;
  json["samples"] = figure.samples;
  return json;
}

double number(const JsonPlace& place, double least, bool above, const std::string& expected) {
  if (!place.json().is_number()) place.fail(expected);
  const double value = place.json().get<double>();
  if (!std::isfinite(value) || value < least || (above && value == least)) place.fail(expected);
  return value;
}

std::vector<double> samples_of(const JsonPlace& place, Kind kind) {
  std::vector<double> samples;
  for (const JsonPlace& item : place.items())
    samples.push_back(kind == Kind::Timed ? number(item, 0, true, "a number above 0")
                                          : number(item, 0, false, "a number of at least 0"));
  return samples;
}

Figure figure_of(const JsonPlace& place) {
  place.expect_only({"name", "unit", "kind", "better", "tolerance", "samples"});
  Figure figure{.name = place["name"].text(), .unit = place["unit"].text()};
  figure.kind = place["kind"].one_of({"timed", "counted"}) == 0 ? Kind::Timed : Kind::Counted;
  figure.better = place["better"].one_of({"lower", "higher"}) == 0 ? Better::Lower : Better::Higher;
  if (const auto tolerance = place.find("tolerance")) {
    if (figure.kind == Kind::Timed) tolerance->refuse("a timed figure has no tolerance");
    figure.tolerance = number(*tolerance, 0, false, "a number of at least 0");
  }
  figure.samples = samples_of(place["samples"], figure.kind);
  if (figure.samples.empty()) place["samples"].fail("at least one sample");
  return figure;
}

Benchmark benchmark_of(const JsonPlace& place) {
  place.expect_only({"name", "figures"});
  Benchmark benchmark{place["name"].text(), {}};
  std::set<std::string> names;
  for (const JsonPlace& item : place["figures"].items()) {
    benchmark.figures.push_back(figure_of(item));
    if (!names.insert(benchmark.figures.back().name).second) item["name"].refuse("a figure has this name already");
  }
  return benchmark;
}

BenchRun run_of(const JsonPlace& place) {
  place.expect_only({"schema", "date", "commit", "modified", "version", "machine", "probe", "benchmarks"});
  if (place["schema"].text() != bench_schema) place["schema"].fail(bench_schema);
  const JsonPlace machine = place["machine"];
  machine.expect_only({"hardware", "libtorch", "mpi", "compiler"});
  BenchRun run{.date = place["date"].text(),
               .commit = place["commit"].text(),
               .modified = place["modified"].boolean(),
               .version = place["version"].text(),
               .machine = {machine["hardware"].text(), machine["libtorch"].text(), machine["mpi"].text(),
                           machine["compiler"].text()},
               .probe = samples_of(place["probe"], Kind::Timed),
               .benchmarks = {}};
  std::set<std::string> names;
  for (const JsonPlace& item : place["benchmarks"].items()) {
    run.benchmarks.push_back(benchmark_of(item));
    if (!names.insert(run.benchmarks.back().name).second) item["name"].refuse("a benchmark has this name already");
  }
  return run;
}

}  // namespace

std::string bench_run_json(const BenchRun& run) {
  Json json = {{"schema", bench_schema},
               {"date", run.date},
               {"commit", run.commit},
               {"modified", run.modified},
               {"version", run.version},
               {"machine",
                {{"hardware", run.machine.hardware},
                 {"libtorch", run.machine.libtorch},
                 {"mpi", run.machine.mpi},
                 {"compiler", run.machine.compiler}}},
               {"probe", run.probe},
               {"benchmarks", Json::array()}};
  for (const Benchmark& benchmark : run.benchmarks) {
    Json figures = Json::array();
    for (const Figure& figure : benchmark.figures) figures.push_back(json_of(figure));
    json["benchmarks"].push_back({{"name", benchmark.name}, {"figures", std::move(figures)}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

BenchRun parse_bench_run(std::string_view text, const std::string& source) {
  const nlohmann::json document = parse_json(text, source);
  return run_of(JsonPlace(document, source));
}

std::vector<BenchRun> read_bench_runs(const std::filesystem::path& path) {
  const std::string text = read_text(path.string());
  std::vector<BenchRun> runs;
  size_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view one = std::string_view(text).substr(begin, end - begin);
    const std::string source = path.string() + ":" + std::to_string(++line);
    if (one.find_first_not_of(" \t\r") != one.npos) runs.push_back(parse_bench_run(one, source));
    begin = end + 1;
  }
  if (runs.empty()) throw InputError(path.string() + ": no run; expected a document " + bench_schema + " on each line");
  return runs;
}

void append_bench_run(const std::filesystem::path& history, const BenchRun& run) {
  std::ifstream in(history, std::ios::binary | std::ios::ate);
  if (in && in.tellg() > 0) {
    in.seekg(-1, std::ios::end);
    if (in.get() != '\n')
      throw InputError(history.string() + ": its last line has no end; an interrupted run may have left it there");
  }
  append_file(history, bench_run_json(run));
}

}  // namespace plumbline::bench
