#include "conformance/judge/verdict/waivers.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>

#include "conformance/protocol/device_kind.h"
#include "conformance/protocol/toml.h"
#include "conformance/protocol/transport_kind.h"
#include "runtime/error.h"
#include "runtime/io/tensor_file.h"
#include "runtime/text/number.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

constexpr const char* kWaiversSchema = "plumbline-waivers/1";
constexpr Status kWaivable[] = {Status::Fail, Status::Error, Status::Timeout, Status::Mistrusted};

bool matches(const std::string& glob, const std::string& text) { return fnmatch(glob.c_str(), text.c_str(), 0) == 0; }

bool matches_one(const std::vector<std::string>& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return matches(glob, text); });
}

/// Removes the dotted numbers from the beginning of `text`.
std::vector<int64_t> take_version(std::string_view& text) {
  std::vector<int64_t> numbers;
  while (true) {
    const std::optional<int64_t> number = take_number<int64_t>(text);
    if (!number || *number < 0) return {};
    numbers.push_back(*number);
    if (text.size() < 2 || text[0] != '.' || text[1] < '0' || text[1] > '9') return numbers;
    text.remove_prefix(1);
  }
}

/// -1, 0 or 1. A missing number is 0: 2.15 equals 2.15.0.
int compare_versions(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const int64_t left = i < a.size() ? a[i] : 0, right = i < b.size() ? b[i] : 0;
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

/// A number or a string: ">=2.11, <2.15".
VersionRange range_of(const TomlPlace& place) {
  const auto* number = place.node().as_integer();
  const std::string text = number == nullptr ? place.node().value_or(std::string()) : std::to_string(number->get());
  const std::string accepted = "a condition such as 4, \"4\", \">=4\", \">=2.11, <2.15\", or a list of them";
  VersionRange range;
  std::string_view rest = text;
  while (true) {
    VersionRange::Clause clause{"==", {}};
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    for (const std::string_view comparison : {"==", "!=", "<=", ">=", "<", ">"})
      if (rest.starts_with(comparison)) {
        clause.comparison = comparison;
        rest.remove_prefix(comparison.size());
        break;
      }
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    clause.version = take_version(rest);
    if (clause.version.empty()) place.fail(accepted);
    range.clauses.push_back(std::move(clause));
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rest.empty()) return range;
    if (!rest.starts_with(',')) place.fail(accepted);
    rest.remove_prefix(1);
  }
}

/// The elements of a list, or what stands in its place.
std::vector<TomlPlace> one_or_several(const TomlPlace& place) {
  return place.node().is_array() ? place.items() : std::vector{place};
}

std::vector<VersionRange> ranges_of(const TomlPlace& place) {
  std::vector<VersionRange> ranges;
  for (const TomlPlace& one : one_or_several(place)) ranges.push_back(range_of(one));
  return ranges;
}

std::vector<std::string> patterns_of(const TomlPlace& place) {
  std::vector<std::string> patterns;
  for (const TomlPlace& one : one_or_several(place)) patterns.push_back(one.text());
  return patterns;
}

std::string word_of(const TomlPlace& place, std::span<const std::string_view> words) {
  return std::string(words[place.one_of(words)]);
}

void read_condition(const TomlPlace& place, Waiver& waiver) {
  place.expect_only({"ranks", "transport", "dtype", "device", "backend", "version"});
  if (const auto ranks = place.find("ranks")) waiver.ranks = ranges_of(*ranks);
  if (const auto version = place.find("version")) waiver.version = ranges_of(*version);
  if (const auto transport = place.find("transport")) waiver.transport = word_of(*transport, kTransportOptions);
  if (const auto dtype = place.find("dtype")) waiver.dtype = word_of(*dtype, reference::kDtypeWords);
  if (const auto device = place.find("device")) waiver.device = word_of(*device, kDeviceWords);
  if (const auto backend = place.find("backend")) waiver.backend_glob = backend->text();
}

Status expectation_of(const TomlPlace& place) {
  std::vector<std::string> names;
  for (const Status status : kWaivable) names.emplace_back(status_name(status));
  return kWaivable[place.one_of(names)];
}

std::chrono::year_month_day date_of(const TomlPlace& place) {
  const auto* date = place.node().as_date();
  if (date == nullptr) place.fail("a date without quotes, the last day on which it holds: 2027-03-01");
  const auto& [year, month, day] = date->get();
  return std::chrono::year(year) / month / day;
}

std::string link_of(const TomlPlace& place) {
  const std::string link = place.text();
  if (link.find_first_of(" \t\n") != std::string::npos || link.find_first_of("/.") == std::string::npos)
    place.fail("an address where the deviation is discussed, https://... or a file's path");
  return link;
}

Waiver waiver_of(const TomlPlace& place, const std::vector<std::string>& case_ids,
                 const std::optional<std::chrono::year_month_day>& expires_of_file) {
  place.expect_only({"case", "schedule", "when", "expect", "race", "says", "link", "reason", "expires"});
  Waiver waiver;
  waiver.where = place.where();
  for (const TomlPlace& glob : one_or_several(place["case"])) {
    waiver.case_globs.push_back(glob.text());
    if (std::ranges::none_of(case_ids, [&](const std::string& id) { return matches(glob.text(), id); }))
      glob.refuse("no case of the corpus matches '" + glob.text() + "'; `plumbline list` names them");
  }
  if (const auto schedule = place.find("schedule")) waiver.schedule_globs = patterns_of(*schedule);
  if (const auto when = place.find("when")) read_condition(*when, waiver);
  waiver.expect = expectation_of(place["expect"]);
  if (const auto race = place.find("race")) waiver.is_race = race->boolean();
  if (const auto says = place.find("says")) waiver.says_globs = patterns_of(*says);
  waiver.link = link_of(place["link"]);
  waiver.reason = one_line(place["reason"].text());
  const bool has_own = place.find("expires") || !expires_of_file;
  waiver.expires = has_own ? date_of(place["expires"]) : *expires_of_file;
  return waiver;
}

bool any_holds(const std::vector<VersionRange>& ranges, const std::string& version) {
  return ranges.empty() ||
         std::any_of(ranges.begin(), ranges.end(), [&](const VersionRange& range) { return range.holds(version); });
}

/// Whether a verdict is the failure that the waiver is about.
bool is_expected(const Waiver& waiver, const Finding& finding) {
  return finding.status == waiver.expect && matches_one(waiver.says_globs, one_line(sentence(finding)));
}

bool equal_or_any(const std::string& wanted, const std::string& is) { return wanted.empty() || wanted == is; }

bool is_about(const Waiver& waiver, const Verdict& verdict, const std::string& version) {
  return matches_one(waiver.case_globs, verdict.run.case_id) &&
         matches_one(waiver.schedule_globs, verdict.run.schedule) &&
         (waiver.backend_glob.empty() || matches(waiver.backend_glob, verdict.backend)) &&
         equal_or_any(waiver.transport, verdict.run.transport) && equal_or_any(waiver.dtype, verdict.dtype) &&
         equal_or_any(waiver.device, verdict.device) && any_holds(waiver.ranks, std::to_string(verdict.run.ranks)) &&
         any_holds(waiver.version, version);
}

/// More unused waivers than this share one line: a run of few cases leaves most waivers unused.
constexpr size_t kMostLinesOfUnused = 3;

/// "2027-03-01"
std::string to_string(const std::chrono::year_month_day& day) {
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                static_cast<unsigned>(day.day()));
  return text;
}

std::string format_waiver(const Waiver& waiver) {
  return waiver.where + ": " + waiver.reason + " (" + waiver.link + ", until " + to_string(waiver.expires) + ")";
}

std::string first_of(const std::vector<std::string>& globs) {
  return globs.front() + (globs.size() > 1 ? " and " + std::to_string(globs.size() - 1) + " more" : "");
}

void add_reason(Verdict& verdict, const std::string& reason) {
  verdict.finding.reason += (verdict.finding.reason.empty() ? "" : "; ") + reason;
}

}  // namespace

std::chrono::year_month_day today() { return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()); }

bool VersionRange::holds(const std::string& version) const {
  std::string_view text = version;
  const std::vector<int64_t> numbers = take_version(text);
  return !numbers.empty() && std::all_of(clauses.begin(), clauses.end(), [&](const Clause& clause) {
    const int order = compare_versions(numbers, clause.version);
    if (clause.comparison == "==") return order == 0;
    if (clause.comparison == "!=") return order != 0;
    if (clause.comparison == "<") return order < 0;
    if (clause.comparison == "<=") return order <= 0;
    return clause.comparison == ">" ? order > 0 : order >= 0;
  });
}

Waivers::Waivers(std::vector<Waiver> waivers, std::chrono::year_month_day day)
    : waivers_(std::move(waivers)), matched_(waivers_.size()), day_(day) {}

Verdict Waivers::applied(Verdict verdict, const std::string& backend_version) {
  const Waiver *expected = nullptr, *other = nullptr, *old = nullptr;
  for (size_t i = 0; i < waivers_.size(); ++i) {
    const Waiver& waiver = waivers_[i];
    if (!is_about(waiver, verdict, backend_version)) continue;
    matched_[i] = true;
    if (waiver.expires < day_) {
      old = &waiver;
    } else if (is_expected(waiver, verdict.finding) || verdict.finding.status == Status::Pass) {
      if (expected == nullptr || (expected->is_race && !waiver.is_race)) expected = &waiver;
    } else {
      other = &waiver;
    }
  }
  if (expected != nullptr) {
    const bool passed = verdict.finding.status == Status::Pass;
    if (passed && expected->is_race) return verdict;
    verdict.finding.status = passed ? Status::XPass : Status::XFail;
    verdict.waiver = (passed ? "passes, so remove this waiver: " : "") + format_waiver(*expected);
  } else if (is_failure(verdict.finding.status) && other != nullptr) {
    const bool same_status = verdict.finding.status == other->expect;
    add_reason(verdict, "the waiver at " + other->where + " expects " + std::string(status_name(other->expect)) +
                            (same_status ? ", and its sentence like " + first_of(other->says_globs) : ""));
  } else if (is_failure(verdict.finding.status) && old != nullptr) {
    add_reason(verdict, "the waiver at " + old->where + " expired on " + to_string(old->expires));
  }
  return verdict;
}

std::vector<std::string> Waivers::expired() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < waivers_.size(); ++i)
    if (matched_[i] && waivers_[i].expires < day_)
      lines.push_back("the waiver at " + waivers_[i].where + " expired on " + to_string(waivers_[i].expires) +
                      "; see " + waivers_[i].link + ", then remove it or give it a new date");
  return lines;
}

std::vector<std::string> Waivers::unused() const {
  std::vector<const Waiver*> all;
  for (size_t i = 0; i < waivers_.size(); ++i)
    if (!matched_[i]) all.push_back(&waivers_[i]);
  std::vector<std::string> lines;
  if (all.size() <= kMostLinesOfUnused) {
    for (const Waiver* waiver : all)
      lines.push_back("the waiver at " + waiver->where + " (" + first_of(waiver->case_globs) + " x " +
                      first_of(waiver->schedule_globs) + ") matched no case in this run");
    return lines;
  }
  std::string line = std::to_string(all.size()) + " of " + std::to_string(waivers_.size()) +
                     " waivers matched no case in this run: those at " + all.front()->where;
  for (size_t i = 1; i < all.size(); ++i) line += ", " + all[i]->where.substr(all[i]->where.rfind(':') + 1);
  return {line};
}

std::vector<Waiver> read_waivers(const std::filesystem::path& path, const std::vector<std::string>& case_ids) {
  const std::string file = path.string();
  const toml::table document = parse_toml(read_file(path), file);
  const TomlPlace root(file, document);
  root.expect_only({"schema", "expires", "waiver"});
  root.expect_schema(kWaiversSchema);
  std::optional<std::chrono::year_month_day> expires;
  if (const auto date = root.find("expires")) expires = date_of(*date);
  std::vector<Waiver> waivers;
  if (const auto list = root.find("waiver"))
    for (const TomlPlace& place : list->items("a list of tables: [[waiver]]"))
      waivers.push_back(waiver_of(place, case_ids, expires));
  return waivers;
}

}  // namespace plumbline::conformance
