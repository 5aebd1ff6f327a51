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
  /// Of a counted figure: a median that differs from the earlier one by at most this fraction of it counts as unchanged
  /// (0.01: 1 %). 0: every difference counts. Always 0 for a timed figure.
  double tolerance = 0;
  /// In `unit` and in the order of measurement; at least one. Each is above 0 if timed, at least 0 if counted.
  std::vector<double> samples = {};

  bool operator==(const Figure&) const = default;
};

struct Benchmark {
  std::string name;  ///< unique in its run: "throughput/1f1b/sleep:5+10/ranks:4/microbatches:8/threads"
  std::vector<Figure> figures;

  bool operator==(const Benchmark&) const = default;
};

/// The machine of a run and the software on it. No member names a host, a user, a path or the environment.
struct Machine {
  std::string hardware;  ///< processor and cores: "AMD EPYC 7B13, 2 cores". Only runs of equal hardware are compared
  std::string libtorch;  ///< its version: "2.15.0"
  std::string mpi;       ///< name and version: "Open MPI v4.1.4"; "none" in a build without MPI
  std::string compiler;  ///< name and version: "g++ 12.2.0"

  bool operator==(const Machine&) const = default;
};

struct BenchRun {
  std::string date;       ///< UTC: "2026-11-25T03:09:46Z"
  std::string commit;     ///< "78e0ff5d0c4a"
  bool modified = false;  ///< whether the sources differed from that commit
  std::string version;    ///< "0.1.0"
  Machine machine;
  /// Seconds that the steady loop took (steady_probe.h), each time it ran before, between and after the benchmarks, in
  /// this order; may be empty.
  std::vector<double> probe;
  std::vector<Benchmark> benchmarks;

  bool operator==(const BenchRun&) const = default;
};

}  // namespace plumbline::bench
