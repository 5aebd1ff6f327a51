// Writes what compare_runs() or a history says about each figure: as text, as JSON, and as JUnit XML for CI systems.
#pragma once

#include <string>
#include <vector>

#include "bench/history/compare.h"

namespace plumbline::bench {

/// One line for each figure that changed, regressions first; one line for each reason why figures cannot be told; and a
/// line with the number of figures by change. `all`: one line for every figure. Ends with a newline.
std::string changes_text(const std::vector<FigureChange>& changes, bool all);

/// A list of objects, with a newline at the end.
std::string changes_json(const std::vector<FigureChange>& changes);

/// A suite for each benchmark, a test case for each figure: a regression is a <failure>, and a figure that cannot be
/// told is <skipped>, so that it never looks like a pass.
std::string changes_junit(const std::vector<FigureChange>& changes);

/// 1 if a figure regressed; else 3 if there is none that could be told, so that nothing is known; else 0.
int exit_code(const std::vector<FigureChange>& changes);

/// A value with its unit, for people: "12.3 ms", "4.5 MiB", "17 allocations".
std::string value_text(double value, const std::string& unit);

/// A ratio of two values as the change it means: "+5.2 %".
std::string change_percent(double ratio);

}  // namespace plumbline::bench
