#include "runtime/engine/plan/shape_agreement.h"

#include <algorithm>

#include "runtime/engine/plan/agreement.h"
#include "runtime/error.h"

namespace plumbline::engine {
namespace {

constexpr size_t kFields = 4;  // of an expectation: stage, micro-batch, value, shape

/// For each micro-batch and each boundary: the value that the rank expects.
Beliefs expectations(const Plan& plan) {
  Beliefs fields;
  for (size_t m = 0; m < plan.variants.size(); ++m)
    for (const split::Boundary& boundary : plan.pipe(static_cast<int>(m)).boundaries) {
      fields.push_back(std::to_string(boundary.producer));
      fields.push_back(std::to_string(m));
      fields.push_back(boundary.name);
      fields.push_back(graph::describe(boundary.value.dtype, boundary.value.sizes) +
                       (boundary.has_gradient ? "*" : ""));
    }
  return fields;
}

std::string where(std::span<const std::string> expectation) {
  return "stage " + expectation[0] + ", micro-batch " + expectation[1] + ", value '" + expectation[2] + "'";
}

/// How the expectations of a rank differ from those of rank 0.
std::string difference(std::span<const std::string> first, std::span<const std::string> theirs, size_t rank) {
  const std::string whose = "rank " + std::to_string(rank);
  for (size_t i = 0; i < std::min(first.size(), theirs.size()); i += kFields) {
    const auto a = first.subspan(i, kFields), b = theirs.subspan(i, kFields);
    if (std::ranges::equal(a, b)) continue;
    if (where(a) == where(b)) return where(a) + ": rank 0 has " + a[3] + ", " + whose + " has " + b[3];
    return where(a) + " on rank 0 is " + where(b) + " on " + whose + ": their models are cut differently";
  }
  return "rank 0 has " + std::to_string(first.size() / kFields) + " boundary values, " + whose + " has " +
         std::to_string(theirs.size() / kFields) + ": their models are cut differently";
}

/// Every rank captured the whole model, so all must expect the same.
std::string contradiction(std::span<const Beliefs> of_rank) {
  for (size_t rank = 1; rank < of_rank.size(); ++rank)
    if (of_rank[rank] != of_rank[0])
      return "shapes disagree before the first message: " + difference(of_rank[0], of_rank[rank], rank);
  return {};
}

}  // namespace

void check_with_peers(const Plan& plan, transport::Transport& transport, const transport::Deadline& deadline) {
  if (transport.size() == 1) return;
  try {
    require_agreement(expectations(plan), transport, deadline, contradiction);
  } catch (const TimeoutError& error) {
    throw TimeoutError(error.what() + std::string(", to compare shapes before the first message"));
  }
}

}  // namespace plumbline::engine
