#include "conformance/judge/verdict/verdict.h"

#include "runtime/text/one_line.h"

namespace plumbline::conformance {

std::string sentence(const Verdict& verdict) {
  std::string clause = sentence(verdict.finding);
  if (!verdict.waiver.empty()) clause += clause.empty() ? verdict.waiver : " [" + verdict.waiver + "]";
  return one_line(std::string(status_headline(verdict.finding.status)) + " " + to_string(verdict.run) +
                  (clause.empty() ? "" : ": " + clause));
}

}  // namespace plumbline::conformance
