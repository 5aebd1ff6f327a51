// The beginning of a run: its report folder, new or resumed, and run.json in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/judge/verdict/verdict.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/protocol.h"
#include "conformance/run/folder/report_lock.h"
#include "conformance/run/folder/run_record.h"

namespace plumbline::conformance {

/// Returns `backend`, with the name and version of the runtime in this process if it has no name.
BackendDescription or_runtime(BackendDescription backend);

/// The ids of the cases that can run: those of the corpus, or the backend's custom models.
std::vector<std::string> case_ids(const BackendDescription& backend);

/// The record of a run with these options.
RunRecord record_of(const RunOptions& options, const RunPlan& plan, const BackendDescription& backend);

/// Creates the folder that --report names, if necessary. Throws InputError when it cannot be created, or not be read
/// and written.
void make_report_folder(const std::filesystem::path& report);

/// The report folder of a run.
struct OpenReport {
  ReportLock lock = {};
  std::vector<Verdict> earlier = {};  ///< of the interrupted run that is resumed
};

/// Creates the report folder of a run, with an empty results/ and run.json in it. With RunOptions::resume it continues
/// in the folder of an interrupted run instead. Throws InputError when the folder cannot be created or written, when
/// another run uses it, when it holds a results/ or a file of ours that no earlier report made, when there is nothing
/// to resume, and when the interrupted run was another one (it names the first difference).
OpenReport open_report_folder(const RunOptions& options, const RunPlan& plan, const BackendDescription& backend = {});

}  // namespace plumbline::conformance
