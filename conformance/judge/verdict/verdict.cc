#include "conformance/judge/verdict/verdict.h"

#include "runtime/text/one_line.h"

namespace plumbline::conformance {

std::string sentence(const Verdict& verdict) {
  std::string clause = sentence(verdict.finding);
  if (!verdict.waiver.empty()) clause += clause.empty() ? verdict.waiver : " [" + verdict.waiver + "]";
  return one_line(std::string(status_headline(verdict.finding.status)) + " " + to_string(verdict.run) +
                  (clause.empty() ? "" : ": " + clause));
}

std::string dtype_text(reference::Dtype dtype) {
  if (dtype == reference::Dtype::F32) return "f32";
  if (dtype == reference::Dtype::BF16) return "bf16";
  return dtype == reference::Dtype::F64 ? "f64" : "f16";
}

}  // namespace plumbline::conformance
