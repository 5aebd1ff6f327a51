// Strict readers of a backend's answers to `describe` and `plan`. INTERPRETING.md, "Protocol", is the contract.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/protocol/job.h"
#include "reference/result_key.h"

namespace plumbline::conformance {

inline constexpr int kProtocolVersion = 1;

/// Which part of a case's files a backend executes.
enum class CaseLevel {
  Program,  ///< runs the op graph
  Stage,    ///< runs each stage as a module that a loader built from the op graph
  Model,    ///< builds the named architecture itself
  Own,      ///< none: it runs its custom models, which are compared with their runs on one rank
};

/// The name of the run on one rank as a schedule, in jobs and file names; no backend's schedule may have it.
inline constexpr const char* kOneRank = "one-rank";

/// Every kind, in the order of the enumeration.
std::vector<reference::ResultKind> all_result_kinds();

struct BackendDescription {
  std::string name, version;
  std::vector<std::string> features;
  /// Names of schedules; nullopt: any, by their files.
  std::optional<std::vector<std::string>> schedules;
  std::vector<reference::ResultKind> delivers;
  CaseLevel level = CaseLevel::Program;
  /// The names of its custom models: for CaseLevel::Own only, and then not empty.
  std::vector<std::string> models;
  /// Whether it executes the actions of schedule.csv in their order, not in another order under that name.
  bool follows_order = true;
  /// The version of the LibTorch that computes, if any: with another than ours, real numbers need not have the same
  /// bits.
  std::string libtorch;
};

/// An error, in one line, for a backend's output other than one JSON value that `bracket` ('{' or '[') opens. It quotes
/// the beginning of the text before the value, after it or in its place. Empty if the output is one such value, and if
/// it begins as JSON but is malformed: the parser reports that.
std::string stray_words(std::string_view printed, char bracket);

/// Throws InputError that starts with `source` and names the place and the expected values.
BackendDescription parse_description(std::string_view text, const std::string& source);

/// `description` as JSON.
std::string description_text(const BackendDescription& description);

struct PlanAnswer {
  bool supported = false;
  std::string why;  ///< not empty if unsupported
};

/// An answer for each case of `job`; none for a case that the backend left out. Throws InputError as above, and for an
/// answer about a case that the job does not have, or a second answer.
std::vector<std::optional<PlanAnswer>> parse_plan(std::string_view text, const Job& job, const std::string& source);

/// The inverse: the answers to `job` as JSON.
std::string plan_text(const Job& job, const std::vector<std::optional<PlanAnswer>>& answers);

}  // namespace plumbline::conformance
