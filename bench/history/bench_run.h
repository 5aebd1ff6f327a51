// One run of benchmarks as plain data: raw samples of every figure, what was measured, and where. bench_run_json.h
// reads and writes it; compare.h and trend.h judge it.
#pragma once

#include <string>
#include <vector>

namespace plumbline::bench {

/// A timed figure depends on what else the machine does. A counted one does not: instructions, allocations, system
/// calls, bytes, calls of operators.
enum class Kind { Timed, Counted };

enum class Better { Lower, Higher };

/// One quantity that a benchmark measures.
struct Figure {
  std::string name;  ///< unique in its benchmark: "step"
  std::string unit;  ///< "s"; "1" for ratios and plain numbers
  Kind kind = Kind::Timed;
  Better better = Better::Lower;
  double tolerance = 0;              ///< counted: the part of the value by which the counter is known to wobble
  std::vector<double> samples = {};  ///< in the order of measurement, at least one; above 0 if timed, else at least 0

  bool operator==(const Figure&) const = default;
};

struct Benchmark {
  std::string name;  ///< unique in its run: "throughput/1f1b/sleep:5+10/ranks:4/microbatches:8/threads"
  std::vector<Figure> figures;

  bool operator==(const Benchmark&) const = default;
};

/// What is told about the machine. Nothing that names a host, a user, a path or the environment.
struct Machine {
  std::string hardware;  ///< "AMD EPYC 7B13, 2 cores". Only figures of equal hardware are compared
  std::string libtorch, mpi, compiler;

  bool operator==(const Machine&) const = default;
};

struct BenchRun {
  std::string date;       ///< UTC: "2026-11-25T03:09:46Z"
  std::string commit;     ///< "78e0ff5d0c4a"
  bool modified = false;  ///< whether the sources differed from that commit
  std::string version;    ///< "0.1.0"
  Machine machine;
  std::vector<double> probe;  ///< seconds of the steady loop (steady_probe.h), before, between and after; may be empty
  std::vector<Benchmark> benchmarks;

  bool operator==(const BenchRun&) const = default;
};

}  // namespace plumbline::bench
