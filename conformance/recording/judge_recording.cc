#include "conformance/recording/judge_recording.h"

#include "conformance/recording/against.h"
#include "runtime/error.h"
#include "runtime/text/counted.h"
#include "runtime/text/join.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

/// Throws InputError if the recording has another number of ranks than the job.
Recording read_recording_of(const std::filesystem::path& folder, int ranks) {
  Recording recording = read_recording(folder);
  if (recording.ranks() != ranks)
    throw InputError(folder.string() + ": recorded on " + counted(recording.ranks(), "rank") + ", the job was for " +
                     std::to_string(ranks));
  return recording;
}

/// In what sense the runs agree if not bit for bit; mostly empty.
std::string remarks(const AgainstVerdict& verdict) {
  std::vector<std::string> all;
  if (verdict.reordered > 0) all.push_back(counted(verdict.reordered, "gradient") + " equal up to the order of a sum");
  if (verdict.rounded > 0)
    all.push_back(counted(verdict.rounded, "value") + " within what rounding moved in " +
                  counted(verdict.perturbed_runs, "perturbed run"));
  all.insert(all.end(), verdict.notes.begin(), verdict.notes.end());
  return join(all, "; ");
}

/// The expected parameters and kinds that were not compared; empty if all were.
std::string what_is_missing(const AgainstVerdict& verdict, const std::vector<reference::ResultKind>& delivers) {
  if (!verdict.unknown_parameters.empty())
    return "not recorded: " + counted(static_cast<int64_t>(verdict.unknown_parameters.size()), "parameter") +
           " of the run on one rank, `" + verdict.unknown_parameters.front() + "` first";
  std::vector<std::string> kinds;
  for (const reference::ResultKind kind : delivers)
    if (!verdict.kinds.contains(kind)) kinds.emplace_back(reference::kind_name(kind));
  return kinds.empty() ? ""
                       : "the backend declares " + join(kinds) + ", but both runs recorded no such value in common";
}

void fill(Finding& finding, const AgainstVerdict& found, const std::vector<reference::ResultKind>& delivers) {
  for (const reference::ResultKind kind : found.kinds) finding.checked.emplace_back(reference::kind_name(kind));
  finding.tensors = found.compared();
  finding.elements = found.elements;
  finding.differing = found.differing;
  finding.first = found.first;
  if (found.first) finding.all = {*found.first};
  finding.truth = found.reordered + found.rounded > 0 ? reference::Truth::Bounded : reference::Truth::SameOrder;
  const std::string missing = what_is_missing(found, delivers);
  if (found.first) {
    finding.status = Status::Fail;
    finding.reason = found.where;
  } else if (found.compared() == 0) {
    finding.status = Status::Error;
    finding.reason = "it has no value in common with its run on one rank";
  } else {
    finding.status = missing.empty() ? Status::Pass : Status::Fail;
    finding.reason = missing.empty() ? remarks(found) : missing;
  }
}

}  // namespace

std::optional<std::string> why_no_baseline(const std::filesystem::path& one) {
  try {
    const Recording recording = read_recording_of(one, 1);
    for (int step = 0; step < recording.steps(); ++step) read_step(recording, step);
  } catch (const std::exception& error) {
    return one_line(error.what());
  }
  return std::nullopt;
}

Finding judge_recording(const std::filesystem::path& one, const std::filesystem::path& run, int ranks,
                        const std::vector<reference::ResultKind>& delivers) {
  Finding finding;
  finding.truth = reference::Truth::SameOrder;
  try {
    const Recording expected = read_recording_of(one, 1), actual = read_recording_of(run, ranks);
    if (expected.steps() != actual.steps())
      throw InputError(run.string() + ": " + counted(actual.steps(), "step") + "; on one rank it recorded " +
                       std::to_string(expected.steps()));
    fill(finding, hold_against(actual, expected), delivers);
  } catch (const std::exception& error) {
    finding.status = Status::Error;
    finding.reason = one_line(error.what());
  }
  return finding;
}

}  // namespace plumbline::conformance
