// Reads and writes runs of benchmarks: a document (plumbline-bench/1, conformance/schema/bench.schema.json), or a
// history with one such document on each line (JSON Lines), to which runs are only ever appended.
//
// The reader is strict: it throws InputError for an unknown or missing member, a value of another type or range, a name
// that occurs twice, and another schema. The text is one line that names the file, the place and the expected value.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/history/bench_run.h"

namespace plumbline::bench {

inline constexpr const char* bench_schema = "plumbline-bench/1";

/// The document on one line, with a newline at the end. Equal runs give equal bytes, and every double is read back as
/// the same double.
std::string bench_run_json(const BenchRun& run);

/// Reads one document; `source` is the prefix of every error.
BenchRun parse_bench_run(std::string_view text, const std::string& source);

/// Reads a file with one document, or with one on each line. An interrupted run may leave a last line without a
/// newline, which is refused like any other line that is no document. Throws InputError for a file without a document.
std::vector<BenchRun> read_bench_runs(const std::filesystem::path& path);

/// Appends the run to a history, which is created if it does not exist. Throws InputError if the file cannot be
/// written, or if its last line has no end.
void append_bench_run(const std::filesystem::path& history, const BenchRun& run);

}  // namespace plumbline::bench
