// The beginning of a run: its report folder, made anew or gone on with, and what it says the run sets out to do.
#pragma once

#include <string>
#include <vector>

#include "conformance/judge/verdict.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/protocol.h"
#include "conformance/run/run_record.h"

namespace plumbline::conformance {

/// The description, or, where it has no name, that of our own runtime, which was not asked.
BackendDescription or_runtime(BackendDescription backend);

/// What can be run: the cases of the corpus, or the backend's own models.
std::vector<std::string> case_ids(const BackendDescription& backend);

/// What a run with these options sets out to do.
RunRecord record_of(const RunOptions& options, const RunPlan& plan, const BackendDescription& backend);

/// Makes the report folder of a run, with an empty results/ and run.json in it. With RunOptions::resume it goes on in
/// the folder of an interrupted run instead, and returns the verdicts that one came to. Throws InputError when the
/// folder cannot be made or written, when there is a results/ that is not an earlier report's, when there is nothing to
/// resume, and when the interrupted run was another one (which names the first difference).
std::vector<Verdict> open_report_folder(const RunOptions& options, const RunPlan& plan,
                                        const BackendDescription& backend = {});

}  // namespace plumbline::conformance
