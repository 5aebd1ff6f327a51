#include "conformance/judge/verdict/finding.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ranges>

#include "runtime/text/counted.h"
#include "runtime/text/join.h"
#include "runtime/text/one_line.h"
#include "runtime/text/shortened.h"
#include "runtime/text/significant.h"

namespace plumbline::conformance {
namespace {

struct StatusInfo {
  std::string_view name;
  std::string_view headline;
  char symbol;
  int badness;
};

const StatusInfo& info_of(Status status) {
  static constexpr std::array<StatusInfo, std::size(all_statuses)> infos = {{{"pass", "PASS", '+', 2},
                                                                             {"fail", "FAIL", 'X', 9},
                                                                             {"unsupported", "UNSUPPORTED", '-', 0},
                                                                             {"skipped", "SKIPPED", 's', 1},
                                                                             {"error", "ERROR", 'E', 8},
                                                                             {"timeout", "TIMEOUT", 'T', 7},
                                                                             {"not-run", "NOT RUN", '?', 4},
                                                                             {"mistrusted", "MISTRUSTED", 'M', 6},
                                                                             {"xfail", "XFAIL", 'w', 3},
                                                                             {"xpass", "XPASS", '!', 5}}};
  return infos[static_cast<size_t>(status)];
}

std::string place(const reference::ResultKey& key) {
  std::string text = "step " + std::to_string(key.step);
  if (key.stage >= 0) text += ", stage " + std::to_string(key.stage);
  if (key.microbatch >= 0) text += ", micro-batch " + std::to_string(key.microbatch);
  return text;
}

std::string_view noun(reference::ResultKind kind) {
  switch (kind) {
    case reference::ResultKind::Partial:
      return "partial gradient";
    case reference::ResultKind::Accumulated:
      return "gradient in the hook";
    case reference::ResultKind::Grad:
      return "gradient";
    case reference::ResultKind::GradNorm:
      return "norm of all gradients";
    case reference::ResultKind::Param:
      return "parameter";
    case reference::ResultKind::OptimizerState:
      return "optimizer state";
    default:
      return reference::kind_name(kind);
  }
}

std::string value_clause(const Difference& d) {
  const std::string got = ", got " + d.actual_text;
  const std::string counted = std::to_string(d.differing) + " of " + std::to_string(d.elements) + " elements; ";
  const std::string at = d.position.empty() ? ": expected " : " at " + position_text(d.position) + ": expected ";
  if (d.what == DifferenceKind::Norm)
    return " is off as a whole: relative error norm " + significant(d.relative_norm, 4) + " over its limit " +
           significant(d.norm_limit, 4) + ", no element over its bound; worst" + at + d.expected_text + got;
  if (d.bounded)
    return " is out of bounds in " + counted + "worst" + at + d.expected_text + got + " (" +
           significant(d.max_ratio_of_bound, 4) + " times its bound)";
  return " differs in " + counted + "first" + at + d.expected_text + got;
}

std::string pass_clause(const Finding& finding) {
  std::string text = std::to_string(finding.tensors) + " tensors";
  for (size_t i = 0; i < finding.checked.size(); ++i) text += (i == 0 ? " (" : ", ") + finding.checked[i];
  if (!finding.checked.empty()) text += ")";
  switch (finding.truth) {
    case reference::Truth::Exact:
      return text + " equal";
    case reference::Truth::SameOrder:
      return text + " equal bit for bit";
    case reference::Truth::Bounded:
      return text + " within bounds";
  }
  return text;
}

}  // namespace

std::string_view status_name(Status status) { return info_of(status).name; }

std::string_view status_headline(Status status) { return info_of(status).headline; }

std::optional<Status> status_of(std::string_view name) {
  for (const Status status : all_statuses)
    if (status_name(status) == name) return status;
  return std::nullopt;
}

char status_symbol(Status status) { return info_of(status).symbol; }

bool is_failure(Status status) {
  return status == Status::Fail || status == Status::Error || status == Status::Timeout ||
         status == Status::Mistrusted || status == Status::XPass;
}

Status worse(Status a, Status b) { return info_of(a).badness >= info_of(b).badness ? a : b; }

void set_differences(Finding& finding, const std::vector<Difference>& differences) {
  finding.status = differences.empty() ? Status::Pass : Status::Fail;
  finding.differing = static_cast<int64_t>(differences.size());
  finding.first = differences.empty() ? std::nullopt : std::optional(differences.front());
  const auto listed = std::min(differences.size(), Finding::max_listed);
  finding.all.assign(differences.begin(), differences.begin() + static_cast<std::ptrdiff_t>(listed));
}

std::string position_text(const std::vector<int64_t>& position) {
  std::string text = "[";
  for (size_t i = 0; i < position.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(position[i]);
  return text + "]";
}

std::string stages_text(const std::vector<int>& stages) {
  const auto numbers = stages | std::views::transform([](int stage) { return std::to_string(stage); });
  return (stages.size() == 1 ? "stage " : "stages ") + join(numbers);
}

std::string sentence(const Difference& d) {
  std::string text = place(d.key) + ": " + std::string(noun(d.key.kind)) + " `" + shortened(d.key.name) + "`";
  if (!d.stages.empty()) text += " of " + stages_text(d.stages);
  switch (d.what) {
    case DifferenceKind::Missing:
      text += " " + d.expected_form + " is missing";
      break;
    case DifferenceKind::Unexpected:
      text += " " + d.actual_form + " was not expected" + (d.likeness.empty() ? "" : "; " + d.likeness);
      break;
    case DifferenceKind::Dtype:
    case DifferenceKind::Shape:
      text += " has the wrong " + std::string(difference_name(d.what)) + ": expected " + d.expected_form + ", got " +
              d.actual_form;
      break;
    case DifferenceKind::Value:
    case DifferenceKind::Norm:
      text += " " + d.actual_form + value_clause(d);
      if (!d.likeness.empty()) text += "; it is " + d.likeness;
      break;
  }
  return one_line(text);
}

std::string ulps_clause(const Difference& d) {
  if (d.what != DifferenceKind::Value || d.bounded || !d.likeness.empty()) return {};
  const double ulps = ulps_between(d.actual_form.substr(0, d.actual_form.find('[')), d.expected, d.actual);
  constexpr double most_in_full = 1e6;
  if (ulps <= 0) return {};
  return ", " + (ulps < most_in_full ? std::to_string(static_cast<int>(ulps)) : significant(ulps, 4)) + " ulp apart";
}

std::string sentence(const Finding& finding) {
  std::string clause;
  if (finding.first) {
    clause = sentence(*finding.first);
    if (finding.truth == reference::Truth::SameOrder) clause += ulps_clause(*finding.first);
    if (finding.differing > 1) clause += " (and " + counted(finding.differing - 1, "more tensor") + ")";
    if (!finding.pattern.empty()) clause += "; " + finding.pattern;
  } else if (finding.status == Status::Pass || finding.status == Status::XPass) {
    clause = pass_clause(finding);
  }
  if (!finding.reason.empty()) clause += clause.empty() ? finding.reason : " [" + finding.reason + "]";
  return clause;
}

}  // namespace plumbline::conformance
