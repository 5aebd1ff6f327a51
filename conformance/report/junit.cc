#include "conformance/report/junit.h"

#include <pugixml.hpp>
#include <sstream>

#include "runtime/io/write_file.h"
#include "runtime/text/significant.h"
#include "runtime/text/xml_text.h"

namespace plumbline::conformance {
namespace {

/// The JUnit element for `status`; null for a pass.
const char* outcome_element(Status status) {
  switch (status) {
    case Status::Pass:
      return nullptr;
    case Status::Fail:
    case Status::Mistrusted:
    case Status::XPass:
      return "failure";
    case Status::Error:
    case Status::Timeout:
    case Status::NotRun:
      return "error";
    case Status::Unsupported:
    case Status::Skipped:
    case Status::XFail:  // JUnit has no expected failures; the message explains it
      return "skipped";
  }
  return "error";
}

struct Counts {
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;
  double seconds = 0.0;

  void add(const Verdict& verdict) {
    const char* element = outcome_element(verdict.finding.status);
    const std::string_view outcome = element == nullptr ? "" : element;
    ++tests;
    failures += outcome == "failure";
    errors += outcome == "error";
    skipped += outcome == "skipped";
    seconds += verdict.seconds;
  }
};

void set_attribute(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name).set_value(xml_characters(value).c_str());
}

void set_counts(pugi::xml_node node, const Counts& counts) {
  set_attribute(node, "tests", std::to_string(counts.tests));
  set_attribute(node, "failures", std::to_string(counts.failures));
  set_attribute(node, "errors", std::to_string(counts.errors));
  set_attribute(node, "skipped", std::to_string(counts.skipped));
}

/// Everything that a reader of this element alone needs.
std::string details(const Verdict& verdict) {
  std::string text = sentence(verdict) + "\n";
  for (size_t i = 1; i < verdict.finding.all.size(); ++i) text += "also: " + sentence(verdict.finding.all[i]) + "\n";
  if (verdict.finding.differing > static_cast<int64_t>(verdict.finding.all.size()))
    text += "and " + std::to_string(verdict.finding.differing - static_cast<int64_t>(verdict.finding.all.size())) +
            " more tensors\n";
  if (!verdict.log.empty()) text += "log: " + verdict.log + "\n";
  if (!verdict.repro.empty()) text += "repeat: " + verdict.repro + "\n";
  return text;
}

void add_case(pugi::xml_node suite, const Verdict& verdict) {
  pugi::xml_node node = suite.append_child("testcase");
  set_attribute(node, "classname", "plumbline." + verdict.run.schedule);
  const std::string place = place_of(verdict.run);
  set_attribute(node, "name", verdict.run.case_id + (place.empty() ? "" : " (" + place + ")"));
  set_attribute(node, "time", fixed(verdict.seconds, 3));
  const char* element = outcome_element(verdict.finding.status);
  if (element == nullptr) return;
  pugi::xml_node outcome = node.append_child(element);
  set_attribute(outcome, "type", std::string(status_name(verdict.finding.status)));
  set_attribute(outcome, "message", sentence(verdict));
  outcome.text().set(xml_characters(details(verdict)).c_str());
}

/// A separate suite, so that a reader of this file alone sees that the run failed.
void add_broken(pugi::xml_node root, const std::vector<std::string>& broken) {
  pugi::xml_node suite = root.append_child("testsuite");
  set_attribute(suite, "name", "outside of any case");
  const int count = static_cast<int>(broken.size());
  set_counts(suite, {.tests = count, .errors = count});
  for (size_t i = 0; i < broken.size(); ++i) {
    pugi::xml_node node = suite.append_child("testcase");
    set_attribute(node, "classname", "plumbline.run");
    set_attribute(node, "name", "failure " + std::to_string(i));
    pugi::xml_node error = node.append_child("error");
    set_attribute(error, "type", "broken");
    set_attribute(error, "message", broken[i]);
  }
}

}  // namespace

void write_junit(const std::filesystem::path& path, const RunReport& report) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  set_attribute(declaration, "version", "1.0");
  set_attribute(declaration, "encoding", "UTF-8");
  pugi::xml_node root = document.append_child("testsuites");
  set_attribute(root, "name", "plumbline");
  Counts total;
  for (const Verdict& verdict : report.verdicts) total.add(verdict);
  const int broken = static_cast<int>(report.broken.size());
  total.tests += broken;
  total.errors += broken;
  set_counts(root, total);
  set_attribute(root, "time", fixed(report.wall_seconds, 3));
  for (const std::string& schedule : matrix_of(report.verdicts).schedules) {
    pugi::xml_node suite = root.append_child("testsuite");
    set_attribute(suite, "name", schedule);
    Counts counts;
    for (const Verdict& verdict : report.verdicts)
      if (verdict.run.schedule == schedule) counts.add(verdict);
    set_counts(suite, counts);
    set_attribute(suite, "time", fixed(counts.seconds, 3));
    pugi::xml_node properties = suite.append_child("properties");
    for (const auto& [name, value] : report.context) {
      pugi::xml_node property = properties.append_child("property");
      set_attribute(property, "name", name);
      set_attribute(property, "value", value);
    }
    for (const Verdict& verdict : report.verdicts)
      if (verdict.run.schedule == schedule) add_case(suite, verdict);
  }
  if (broken != 0) add_broken(root, report.broken);
  std::ostringstream text;
  document.save(text, "  ");
  write_file(path, text.str());
}

}  // namespace plumbline::conformance
