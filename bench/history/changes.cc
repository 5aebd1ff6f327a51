#include "bench/history/changes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>

#include "runtime/text/counted.h"
#include "runtime/text/one_line.h"
#include "runtime/text/significant.h"
#include "runtime/text/xml_text.h"

namespace plumbline::bench {
namespace {

constexpr Change kAll[] = {Change::Regressed, Change::Improved, Change::Unchanged, Change::CannotTell};

std::string change_text(const FigureChange& change) {
  const Judgement& judgement = change.judgement;
  std::string text =
      value_text(judgement.before, change.figure.unit) + " -> " + value_text(judgement.after, change.figure.unit);
  if (std::isfinite(judgement.ratio)) text += " (" + change_percent(judgement.ratio) + ")";
  if (change.since) {
    text += ", since " + change.since->commit + " of " + change.since->date.substr(0, 10);
    text += change.since->confirmed ? ", " + counted(change.since->runs, "run")
                                    : "; in one run only: measure again to confirm it";
  }
  return text;
}

std::string line_of(const FigureChange& change) {
  std::array<char, 16> word;
  std::snprintf(word.data(), word.size(), "%-12s", change_name(change.judgement.change));
  std::string line = word.data() + one_line(change.benchmark) + " " + one_line(change.figure.name) + ": ";
  line += change_text(change);
  if (!change.judgement.reason.empty()) line += "; " + change.judgement.reason;
  return line + "\n";
}

void set_attribute(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name).set_value(xml_characters(value).c_str());
}

std::map<Change, int> count(const std::vector<FigureChange>& changes) {
  std::map<Change, int> counts;
  for (const FigureChange& change : changes) ++counts[change.judgement.change];
  return counts;
}

}  // namespace

std::string value_text(double value, const std::string& unit) {
  const auto scaled = [&](std::initializer_list<std::pair<double, const char*>> units) {
    for (const auto& [size, name] : units)
      if (value >= size) return significant(value / size, 4) + " " + name;
    return significant(value, 4) + " " + unit;
  };
  if (unit == "s") return scaled({{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}});
  if (unit == "bytes") return scaled({{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}});
  return significant(value, value >= 1e6 ? 9 : 5) + (unit == "1" ? "" : " " + unit);
}

std::string change_percent(double ratio) { return (ratio < 1 ? "" : "+") + percent(ratio - 1); }

std::string changes_text(const std::vector<FigureChange>& changes, bool all) {
  std::string text;
  for (const Change kind : kAll)
    for (const FigureChange& change : changes)
      if (change.judgement.change == kind && (all || kind == Change::Regressed || kind == Change::Improved))
        text += line_of(change);
  if (!all) {
    std::map<std::string, int> reasons;
    for (const FigureChange& change : changes)
      if (change.judgement.change == Change::CannotTell) ++reasons[one_line(change.judgement.reason)];
    for (const auto& [reason, figures] : reasons)
      text += "cannot tell " + counted(figures, "figure") + ": " + reason + "\n";
  }
  const std::map<Change, int> counts = count(changes);
  std::string summary;
  for (const Change kind : kAll)
    if (const auto found = counts.find(kind); found != counts.end())
      summary += (summary.empty() ? "" : ", ") + std::to_string(found->second) + " " +
                 (kind == Change::CannotTell ? "not told" : change_name(kind));
  return text + (summary.empty() ? "no figures" : summary) + "\n";
}

std::string changes_json(const std::vector<FigureChange>& changes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FigureChange& change : changes) {
    const Judgement& judgement = change.judgement;
    nlohmann::ordered_json json = {{"benchmark", change.benchmark},
                                   {"figure", change.figure.name},
                                   {"unit", change.figure.unit},
                                   {"kind", change.figure.kind == Kind::Timed ? "timed" : "counted"},
                                   {"change", change_name(judgement.change)},
                                   {"before", judgement.before},
                                   {"after", judgement.after},
                                   {"ratio", nullptr},
                                   {"reason", judgement.reason},
                                   {"since", nullptr}};
    if (std::isfinite(judgement.ratio)) json["ratio"] = judgement.ratio;
    if (change.since)
      json["since"] = {{"commit", change.since->commit},
                       {"date", change.since->date},
                       {"runs", change.since->runs},
                       {"confirmed", change.since->confirmed}};
    list.push_back(std::move(json));
  }
  return list.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string changes_junit(const std::vector<FigureChange>& changes) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  set_attribute(declaration, "version", "1.0");
  set_attribute(declaration, "encoding", "UTF-8");
  pugi::xml_node root = document.append_child("testsuites");
  set_attribute(root, "name", "plumbline bench");
  std::vector<std::string> benchmarks;
  for (const FigureChange& change : changes)
    if (std::ranges::find(benchmarks, change.benchmark) == benchmarks.end()) benchmarks.push_back(change.benchmark);
  for (const std::string& benchmark : benchmarks) {
    std::vector<FigureChange> own;
    std::ranges::copy_if(changes, std::back_inserter(own), [&](const auto& one) { return one.benchmark == benchmark; });
    std::map<Change, int> counts = count(own);
    pugi::xml_node suite = root.append_child("testsuite");
    set_attribute(suite, "name", benchmark);
    set_attribute(suite, "tests", std::to_string(own.size()));
    set_attribute(suite, "failures", std::to_string(counts[Change::Regressed]));
    set_attribute(suite, "errors", "0");
    set_attribute(suite, "skipped", std::to_string(counts[Change::CannotTell]));
    for (const FigureChange& change : own) {
      pugi::xml_node test = suite.append_child("testcase");
      set_attribute(test, "classname", "plumbline.bench." + benchmark);
      set_attribute(test, "name", change.figure.name);
      const bool failed = change.judgement.change == Change::Regressed;
      if (!failed && change.judgement.change != Change::CannotTell) continue;
      pugi::xml_node outcome = test.append_child(failed ? "failure" : "skipped");
      set_attribute(outcome, "message", failed ? change_text(change) : change.judgement.reason);
    }
  }
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

int exit_code(const std::vector<FigureChange>& changes) {
  std::map<Change, int> counts = count(changes);
  if (counts[Change::Regressed] > 0) return 1;
  return counts[Change::Improved] + counts[Change::Unchanged] > 0 ? 0 : 3;
}

}  // namespace plumbline::bench
