// The answers of a backend to `describe` and `plan`, parsed strictly. INTERPRETING.md, "Protocol", is the contract.
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
  Own,      ///< takes none: it runs custom models, compared with its run on one rank
};

/// The schedule of that run in a job, and in the names of its files; a backend's schedule must not have this name.
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
  /// The names of its custom models; not empty for CaseLevel::Own, and only there.
  std::vector<std::string> models;
  /// It executes the actions of schedule.csv in their order; else in its own order of the schedule of that name.
  bool follows_order = true;
  /// Version of the LibTorch that computes, if any: with another than ours real numbers need not have the same bits.
  std::string libtorch;
};

/// Text that a backend printed before, after or in place of one JSON value opened by `bracket` ('{' or '['): its
/// beginning, quoted, and what is accepted, in one line. Empty where it printed nothing else, and for malformed JSON,
/// whose error the parser reports.
std::string stray_words(std::string_view printed, char bracket);

/// Errors: InputError, opened by `source`, naming the place and the accepted values.
BackendDescription parse_description(std::string_view text, const std::string& source);

/// The inverse: `description` as JSON.
std::string description_text(const BackendDescription& description);

struct PlanAnswer {
  bool supported = false;
  std::string why;  ///< not empty if unsupported
};

/// An answer for each case of `job`, nullopt for one that was left out. Errors: InputError as above, and for an answer
/// about a case that the job does not hold, or a second one.
std::vector<std::optional<PlanAnswer>> parse_plan(std::string_view text, const Job& job, const std::string& source);

/// The inverse: the answers to `job` as JSON.
std::string plan_text(const Job& job, const std::vector<std::optional<PlanAnswer>>& answers);

}  // namespace plumbline::conformance
