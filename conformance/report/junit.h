// Writes the report as JUnit XML for CI systems: one suite for each schedule, one test case for each verdict.
#pragma once

#include <filesystem>

#include "conformance/report/report.h"

namespace plumbline::conformance {

/// Fail, Mistrusted and XPass become <failure>; Error, Timeout and NotRun <error>; Unsupported, Skipped and XFail
/// <skipped>, so that a run without a judgement never looks like a pass. Failures outside of any case
/// (RunReport::broken) become <error>s in a separate suite. Throws InputError if the file cannot be written.
void write_junit(const std::filesystem::path& path, const RunReport& report);

}  // namespace plumbline::conformance
