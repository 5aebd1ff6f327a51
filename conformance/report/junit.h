// The report as JUnit XML, for CI systems: a suite for each schedule, a test case for each verdict.
#pragma once

#include <filesystem>

#include "conformance/report/report.h"

namespace plumbline::conformance {

/// Fail and Mistrusted become <failure>; Error, Timeout and NotRun <error>; Unsupported and Skipped <skipped>: nothing
/// that was not judged looks like a pass. What failed outside of any case is an <error> in a suite of its own.
/// InputError when the place cannot be written.
void write_junit(const std::filesystem::path& path, const RunReport& report);

}  // namespace plumbline::conformance
