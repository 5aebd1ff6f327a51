// Writes the report as JSON: results.jsonl grows while cases run (a line for each verdict), report.json holds
// everything. read_json.h reads both. Numbers that JSON cannot hold become the strings "inf", "-inf", "nan"; bytes that
// are not UTF-8 become U+FFFD.
#pragma once

#include <filesystem>

#include "conformance/report/report.h"

namespace plumbline::conformance {

/// Version of the layout, raised by every change that breaks readers.
inline constexpr const char* report_schema = "plumbline-report/2";

/// Writes the whole report, under a temporary name first; pictures of measurements go to timelines/ beside it. Throws
/// InputError if a file cannot be written.
void write_report_json(const std::filesystem::path& path, const RunReport& report);

/// The measurements as a JSON array in the layout of the report. Ends with a newline.
std::string throughput_json(const std::vector<Throughput>& throughput);

/// Appends one verdict as one line and flushes it at once. Throws InputError if the file cannot be written.
void append_jsonl(const std::filesystem::path& path, const Verdict& verdict);

}  // namespace plumbline::conformance
