// Reads the files of json.h: to resume a run, to judge a folder again, to combine several reports on one page.
//
// The reader is strict: it throws InputError for an unknown or missing member, a value of another type, another schema
// version and bytes that are not UTF-8. The text is one line that names the file, the place in it, and the expected
// value.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

/// Reads report.json and the pictures that it names. The names in `context` and `environment` are sorted
/// alphabetically.
RunReport read_report_json(const std::filesystem::path& path);

/// Reads results.jsonl, in file order. An interrupted run may leave a last line without a newline, which is dropped.
/// `complete_bytes`, unless null, receives the number of bytes in the complete lines.
std::vector<Verdict> read_jsonl(const std::filesystem::path& path, size_t* complete_bytes = nullptr);

}  // namespace plumbline::conformance
