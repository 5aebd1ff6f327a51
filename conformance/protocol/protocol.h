// What a backend answers to `describe` and `plan`, read strictly. INTERPRETING.md, "Protocol", is the contract.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/protocol/job.h"
#include "reference/result_key.h"

namespace plumbline::conformance {

inline constexpr int kProtocolVersion = 1;

/// How much of a case a backend takes from its files.
enum class CaseLevel {
  Program,  ///< runs the op graph
  Stage,    ///< runs each stage as a module that a loader made of the op graph
  Model,    ///< builds the named architecture itself
  Own,      ///< takes none: it runs models of its own, and is held against its own run on one rank
};

/// The schedule of that run in a job, and in the names of its files; no schedule of a backend is called so.
inline constexpr const char* kOneRank = "one-rank";

/// Every kind, in the order of the enumeration.
std::vector<reference::ResultKind> all_result_kinds();

struct BackendDescription {
  std::string name, version;
  std::vector<std::string> features;
  /// Names of schedules; none: any, by their files.
  std::optional<std::vector<std::string>> schedules;
  std::vector<reference::ResultKind> delivers;
  CaseLevel level = CaseLevel::Program;
  /// Of CaseLevel::Own, and then not empty: what it calls them.
  std::vector<std::string> models;
  /// It runs the actions of schedule.csv in their order; else its own order of the schedule of that name.
  bool follows_order = true;
  /// Of the LibTorch that computes, if one does: with another than ours real numbers are not held to the same bits.
  std::string libtorch;
};

/// What else than one JSON value, opened by `bracket` ('{' or '['), a backend printed: words before it, after it or in
/// its place, their beginning quoted, and what is accepted; in one line. Empty where that is all it printed, and where
/// it begins as JSON and goes on as none: what is wrong with that, the parser knows.
std::string stray_words(std::string_view printed, char bracket);

/// Errors: InputError, opened by `source`, naming the place and what would be accepted.
BackendDescription parse_description(std::string_view text, const std::string& source);

/// How `description` stands in JSON.
std::string description_text(const BackendDescription& description);

struct PlanAnswer {
  bool supported = false;
  std::string why;  ///< not empty where it is not
};

/// An answer for each case of `job`, none for one that was left out. Errors: InputError as above, and for an answer
/// about what the job does not hold, or a second one.
std::vector<std::optional<PlanAnswer>> parse_plan(std::string_view text, const Job& job, const std::string& source);

/// The inverse: the answers to `job` as JSON.
std::string plan_text(const Job& job, const std::vector<std::optional<PlanAnswer>>& answers);

}  // namespace plumbline::conformance
