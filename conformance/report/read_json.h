// Reads what json.h writes: to resume a run, to judge a folder again, to make one page of several.
//
// Strict: an unknown or missing member, a value of another kind, another schema version and bytes that are not UTF-8
// are refused by an InputError of one line that names the file, the place in it, and what would be accepted.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

/// report.json, with the pictures it names.
RunReport read_report_json(const std::filesystem::path& path);

/// results.jsonl, in its order. A last line without its end is what an interrupted run leaves: it is dropped, and
/// `complete_bytes`, where given, is set to the length of what comes before it.
std::vector<Verdict> read_jsonl(const std::filesystem::path& path, size_t* complete_bytes = nullptr);

}  // namespace plumbline::conformance
