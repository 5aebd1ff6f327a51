// Strict readers of a backend's answers to the verbs `describe` and `plan`. INTERPRETING.md, "Protocol", is the
// contract.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/protocol/job.h"
#include "reference/result_key.h"

namespace plumbline::conformance {

inline constexpr int kProtocolVersion = 1;

/// The part of an exported case that a backend executes.
enum class CaseLevel {
  Program,  ///< the op graph
  Stage,    ///< each stage as a module that a loader built from the op graph
  Model,    ///< the named architecture, which the backend builds itself
  Own,      ///< nothing: the backend runs custom models, which are compared with their runs on one rank
};

/// The schedule name of a custom model's run on one rank, in jobs and file names; reserved.
inline constexpr const char* kOneRank = "one-rank";

/// Every kind of result, in the order of the enumeration.
std::vector<reference::ResultKind> all_result_kinds();

/// The feature of a backend that takes cases with data-parallel replicas.
inline constexpr const char* kReplicasFeature = "replicas";
/// The feature of a backend that executes OFFLOAD and RELOAD.
inline constexpr const char* kOffloadFeature = "offload";

struct BackendDescription {
  std::string name, version;
  std::vector<std::string> features;
  /// Names of the supported schedules; nullopt: any schedule, read from its file.
  std::optional<std::vector<std::string>> schedules;
  std::vector<reference::ResultKind> delivers;  ///< not empty
  CaseLevel level = CaseLevel::Program;
  /// The names of the custom models: not empty for CaseLevel::Own, empty for every other level.
  std::vector<std::string> models;
  /// Whether the backend executes the actions in the order of schedule.csv, not in its own order under that name.
  bool follows_order = true;
  /// The version of the LibTorch that computes; empty: none. Same-order cases need the version of this build
  /// (demote()).
  std::string libtorch;
  /// Where it computes: "cpu" or "cuda".
  std::string device = "cpu";
  /// The ways in which it can make its transport worse on purpose, see runtime/transport/adverse_wire.h.
  std::vector<std::string> wire;
};

/// Checks that the standard output of a backend is a single JSON value that `bracket` ('{' or '[') opens. Returns an
/// error of one line that quotes the beginning of the text before the value, after it or in its place. Returns an empty
/// string if there is no such text, and for malformed JSON, which the parser reports.
std::string stray_words(std::string_view printed, char bracket);

/// Parses an answer to `describe`. Throws InputError, which starts with `source` and names the place and the expected
/// values, for a malformed answer and for another protocol version.
BackendDescription parse_description(std::string_view text, const std::string& source);

/// The inverse of parse_description().
std::string description_text(const BackendDescription& description);

struct PlanAnswer {
  bool supported = false;
  std::string why;  ///< the reason; not empty if unsupported
};

/// Parses an answer to `plan`. The result is indexed as Job::cases; nullopt: the backend did not answer for this case.
/// Throws InputError as parse_description() does, and for an answer about a case that is not in the job, or a second
/// answer about a case.
std::vector<std::optional<PlanAnswer>> parse_plan(std::string_view text, const Job& job, const std::string& source);

/// The inverse: the answers to `job` as JSON.
std::string plan_text(const Job& job, const std::vector<std::optional<PlanAnswer>>& answers);

}  // namespace plumbline::conformance
