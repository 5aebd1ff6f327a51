// Writes the report as JSON: results.jsonl grows while cases run (one line for each verdict), and report.json contains
// the whole report. read_json.h reads both. Numbers that JSON lacks become the strings "inf", "-inf" and "nan"; bytes
// that are not UTF-8 become U+FFFD.
#pragma once

#include <filesystem>

#include "conformance/report/report.h"

namespace plumbline::conformance {

/// The version of the layout, incremented by every change that breaks readers.
inline constexpr const char* report_schema = "plumbline-report/3";

/// Writes the whole report, first under a temporary name, so that no reader sees a partial file. Pictures of
/// measurements go to the folder timelines/ beside it. Throws InputError if a file cannot be written.
void write_report_json(const std::filesystem::path& path, const RunReport& report);

/// Appends one verdict as one line and flushes it at once. Throws InputError if the file cannot be written.
void append_jsonl(const std::filesystem::path& path, const Verdict& verdict);

}  // namespace plumbline::conformance
