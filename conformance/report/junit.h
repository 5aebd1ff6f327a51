// Writes the report as JUnit XML for CI systems: a suite for each schedule, a test case for each verdict.
#pragma once

#include <filesystem>

#include "conformance/report/report.h"

namespace plumbline::conformance {

/// Fail, Mistrusted and XPass become <failure>; Error, Timeout and NotRun <error>; Unsupported, Skipped and XFail
/// <skipped>: no run without a judgement looks like a pass. Failures outside of any case are <error>s in a separate
/// suite. Throws InputError if the file cannot be written.
void write_junit(const std::filesystem::path& path, const RunReport& report);

}  // namespace plumbline::conformance
