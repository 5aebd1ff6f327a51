// Identity testing: how surely a run on random whole numbers tells two polynomials apart. No torch.
//
// The models of polynomial.cc compute polynomials of their leaves (parameters and inputs), each drawn from the whole
// numbers -max to max, independently and uniformly. If an engine computes another polynomial of at most the same total
// degree, all its results agree with the right ones with a probability of at most degree / (2 max + 1), by the lemma of
// Schwartz (1980), Zippel (1979), and DeMillo and Lipton (1978).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reference/case.h"

namespace plumbline::models {

struct IdentityTest {
  int loss_degree = 0;  ///< the total degree of a loss; that of an output or a boundary value is not higher
  int64_t values = 0;   ///< the number of whole numbers from which each leaf is drawn
};

/// Whether a model of the zoo is one of polynomial.cc.
bool is_polynomial_model(const std::string& name);

/// The total degree of a model's loss, the sum of output 0, in the zoo's polynomial models.
inline constexpr int kPolynomialDegree = 8;

/// The largest whole number among the leaves of a polynomial model, such that all its sums are exact in that dtype.
int64_t largest_leaf(reference::Dtype dtype);

/// The identity test that a run of the case makes. Nullopt if its results are no polynomials of its leaves, or if the
/// leaves are not independent and uniform.
std::optional<IdentityTest> identity_test(const reference::Case& c);

/// An upper bound of the probability that a nonzero polynomial of that total degree is 0 in each of `draws` independent
/// draws, in which each variable is drawn uniformly and independently from `values` numbers.
double pass_bound(int degree, int64_t values, int draws = 1);

}  // namespace plumbline::models
