// Normal forms: what a term is over the real numbers, where the order of a sum does not count and factors commute with
// linear operators. Equal normal forms mean equal values for all inputs; the opposite does not hold: a normal form
// knows linear operators, sums and factors, and no other law of algebra.
#pragma once

#include <unordered_map>
#include <vector>

#include "conformance/proof/sums/rational.h"
#include "conformance/proof/terms/term.h"

namespace plumbline::proof {

/// A factor times a body. A body is either an operator applied to bodies, or a sum: the multiset of its addends, each
/// with a coefficient, scaled so that one addend has the coefficient 1. A factor of 0 has a body of its own.
struct NormalForm {
  Rational factor = 1;
  TermId body;
};

/// The normal forms of terms, each computed once. `terms` must outlive this object. Not thread-safe.
class NormalForms {
 public:
  explicit NormalForms(const Terms& terms) : terms_(terms) {}

  const NormalForm& of(const TermId& id);

 private:
  struct Addend {
    Rational coefficient;
    TermId id;  ///< of a term, or of a body
  };
  using Addends = std::vector<Addend>;

  Addends addends_of(const TermId& sum) const;
  std::vector<TermId> parts_of(const TermId& id) const;
  NormalForm compute(const TermId& id);
  NormalForm sum(const TermId& id);
  NormalForm fill(const Term& term);
  NormalForm applied(const Term& term);
  NormalForm zero();

  const Terms& terms_;
  Terms bodies_;
  std::unordered_map<TermId, NormalForm, TermIdHash> known_;
  std::unordered_map<TermId, Addends, TermIdHash> sums_;  // by body: addends that are bodies
};

/// What a computed term is to the expected one.
enum class Relation {
  SameTerm,
  SameSum,   ///< another order of the same sum: equal over the real numbers
  Multiple,  ///< the expected sum times a factor
  AnotherSum,
};

struct TermRelation {
  Relation relation = Relation::SameTerm;
  Rational factor = 1;  ///< of Multiple: found = factor x expected
};

TermRelation relation_between(NormalForms& forms, const TermId& expected, const TermId& found);

}  // namespace plumbline::proof
