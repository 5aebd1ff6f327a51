// Normal forms of random expressions. The oracle evaluates an expression exactly, in rational numbers, at random
// points: equal normal forms must have equal values there, and unequal ones different values.
#include "conformance/proof/sums/normal_form.h"
#include "conformance/proof/sums/difference.h"
#include "runtime/testing/in_full.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace plumbline::proof {
namespace {

constexpr const char* kType = "f64[]";

/// Builds terms as the recorder does for scalars, and their values at one point.
class Expressions {
 public:
  explicit Expressions(Terms& terms) : terms_(terms) {}

  TermId leaf(const std::string& name, int value) {
    return keep(terms_.add({"parameter", name + " " + kType + " 0", {}}), value);
  }
  TermId add(const TermId& a, const TermId& b, int alpha = 1) {
    return keep(terms_.add({"aten::add.Tensor", of("self=% other=% alpha=" + std::to_string(alpha)), {a, b}}),
                at(a) + alpha * at(b));
  }
  TermId sub(const TermId& a, const TermId& b) {
    return keep(terms_.add({"aten::sub.Tensor", of("self=% other=% alpha=1"), {a, b}}), at(a) - at(b));
  }
  TermId neg(const TermId& a) { return keep(terms_.add({"aten::neg", of("self=%"), {a}}), -at(a)); }
  TermId times(const TermId& a, int number) {
    return keep(terms_.add({"aten::mul.Tensor", of("self=% other=%"), {a, this->number(number)}}), at(a) * number);
  }
  TermId over(const TermId& a, int number) {
    return keep(terms_.add({"aten::div.Scalar", of("self=% other=" + std::to_string(number)), {a}}), at(a) / number);
  }
  TermId product(const TermId& a, const TermId& b) {
    return keep(terms_.add({"aten::mul.Tensor", of("self=% other=%"), {a, b}}), at(a) * at(b));
  }
  /// An operator about which nothing is known.
  TermId square_plus_one(const TermId& a) {
    return keep(terms_.add({"unknown", of("self=%"), {a}}), at(a) * at(a) + 1);
  }
  const Rational& at(const TermId& id) const { return values_.at(id); }

 private:
  TermId number(int value) { return terms_.add({"number", std::to_string(value), {}}); }
  static std::string of(const std::string& arguments) { return std::string(kType) + " " + arguments; }
  TermId keep(const TermId& id, const Rational& value) {
    values_.insert_or_assign(id, value);
    return id;
  }

  Terms& terms_;
  std::map<TermId, Rational> values_;
};

class NormalFormTest : public ::testing::Test {
 protected:
  TermRelation relation(const TermId& expected, const TermId& found) {
    NormalForms forms(terms_);
    return relation_between(forms, expected, found);
  }
  Relation kind(const TermId& expected, const TermId& found) { return relation(expected, found).relation; }

  Terms terms_;
  Expressions e_{terms_};
  TermId a_ = e_.leaf("a", 3), b_ = e_.leaf("b", 5), c_ = e_.leaf("c", 7), d_ = e_.leaf("d", 11);
};

TEST_F(NormalFormTest, TheOrderOfASumDoesNotCount) {
  const TermId left = e_.add(e_.add(e_.add(a_, b_), c_), d_), right = e_.add(e_.add(d_, c_), e_.add(b_, a_));
  EXPECT_EQ(kind(left, right), Relation::SameSum);
  EXPECT_EQ(kind(left, left), Relation::SameTerm);
  EXPECT_EQ(kind(left, e_.add(e_.add(a_, b_), c_)), Relation::AnotherSum);
  EXPECT_EQ(kind(left, e_.add(left, a_)), Relation::AnotherSum) << "an addend too many";
  EXPECT_EQ(kind(left, e_.sub(e_.add(left, a_), a_)), Relation::SameSum) << "added and taken away";
  EXPECT_EQ(kind(a_, e_.sub(e_.add(a_, b_), b_)), Relation::SameSum);
  EXPECT_EQ(kind(e_.sub(a_, a_), e_.sub(b_, b_)), Relation::SameSum) << "nothing is left";
}

TEST_F(NormalFormTest, AFactorIsARational) {
  const TermId sum = e_.add(a_, b_);
  EXPECT_EQ(relation(e_.over(sum, 8), e_.over(sum, 64)).factor, Rational(1, 8));
  EXPECT_EQ(relation(sum, e_.times(sum, 3)).factor, 3);
  EXPECT_EQ(relation(sum, e_.neg(sum)).factor, -1);
  EXPECT_EQ(kind(sum, e_.over(sum, 8)), Relation::Multiple);
  EXPECT_EQ(kind(e_.over(sum, 8), e_.add(e_.over(a_, 8), e_.over(b_, 8))), Relation::SameSum) << "before or after";
  EXPECT_EQ(kind(e_.over(sum, 8), e_.add(e_.over(a_, 8), e_.over(b_, 4))), Relation::AnotherSum);
  EXPECT_EQ(kind(e_.product(e_.over(a_, 4), b_), e_.over(e_.product(a_, b_), 4)), Relation::SameSum);
  EXPECT_EQ(kind(e_.square_plus_one(e_.times(a_, 2)), e_.times(e_.square_plus_one(a_), 2)), Relation::AnotherSum);
  EXPECT_EQ(kind(e_.square_plus_one(e_.add(a_, b_)), e_.square_plus_one(e_.add(b_, a_))), Relation::SameSum)
      << "inside of an operator that is not linear";
}

TEST_F(NormalFormTest, OperandsThatAreNoAddendsDoNotChangePlaces) {
  EXPECT_EQ(kind(e_.product(a_, b_), e_.product(b_, a_)), Relation::AnotherSum);  // mm is no more commutative
  const TermId wide = terms_.add({"aten::add.Tensor", "f64[2] self=% other=% alpha=1", {a_, b_}});
  EXPECT_EQ(kind(e_.add(a_, b_), wide), Relation::AnotherSum) << "of other sizes";
}

TEST_F(NormalFormTest, WhatRoundsIsNotLinear) {
  const auto cast = [&](const std::string& type, const TermId& of) {
    return terms_.add({"cast", type + " self=%", {of}});
  };
  EXPECT_EQ(kind(cast("i64[]", a_), cast("i64[]", e_.over(a_, 2))), Relation::AnotherSum);
  EXPECT_EQ(relation(cast("f32[]", a_), cast("f32[]", e_.over(a_, 2))).factor, Rational(1, 2));
  const TermId two = terms_.add({"number", "2", {}});
  const TermId floor = terms_.add({"aten::div.Tensor_mode", "f64[] self=% other=% rounding_mode=floor", {a_, two}});
  EXPECT_EQ(kind(e_.over(a_, 2), floor), Relation::AnotherSum);
}

TEST_F(NormalFormTest, AFactorOfSomeOperandsIsNoFactorOfAll) {
  const auto cat = [&](const TermId& a, const TermId& b) {
    return terms_.add({"aten::cat", "f64[2] tensors=[%, %] dim=0", {a, b}});
  };
  EXPECT_EQ(kind(cat(a_, b_), cat(e_.times(a_, 2), b_)), Relation::AnotherSum);
  EXPECT_EQ(kind(cat(a_, b_), cat(a_, e_.times(b_, 2))), Relation::AnotherSum);
  EXPECT_EQ(relation(cat(a_, b_), cat(e_.times(a_, 2), e_.times(b_, 2))).factor, 2);
}

TEST_F(NormalFormTest, ASumOfWhichOneAddendIsLeftKeepsItsSizes) {
  const TermId nothing = e_.sub(b_, b_);
  EXPECT_EQ(kind(a_, terms_.add({"aten::add.Tensor", "f64[] self=% other=% alpha=1", {a_, nothing}})),
            Relation::SameSum);
  EXPECT_EQ(kind(a_, terms_.add({"aten::add.Tensor", "f64[2] self=% other=% alpha=1", {a_, nothing}})),
            Relation::AnotherSum);
}

TEST_F(NormalFormTest, ARunningSumOfManyAddendsTakesLinearTime) {
  TermId forwards = a_, backwards = a_;
  std::vector<TermId> parts;
  for (int i = 0; i < 20000; ++i) parts.push_back(e_.leaf("p" + std::to_string(i), i));
  for (size_t i = 0; i < parts.size(); ++i) {
    forwards = e_.add(forwards, parts[i]);
    backwards = e_.add(backwards, parts[parts.size() - 1 - i]);
  }
  EXPECT_EQ(kind(forwards, backwards), Relation::SameSum);
}

/// Rewrites that keep the value, and random expressions that do not.
TEST_F(NormalFormTest, RandomExpressionsHaveTheRelationOfTheirValues) {
  const uint32_t seeds = testing::in_full_or_sample(300, 75);
  for (uint32_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 draw(seed);
    const auto below = [&](int n) { return static_cast<int>(draw() % n); };
    std::vector<TermId> made = {a_, b_, c_, d_};
    const auto any = [&] { return made[below(static_cast<int>(made.size()))]; };
    for (int i = 0; i < 12; ++i) {
      const TermId x = any(), y = any();
      const TermId next[] = {e_.add(x, y),  e_.add(x, y, below(5) - 2), e_.sub(x, y),         e_.neg(x), e_.times(x, 2),
                             e_.over(x, 3), e_.product(x, y),           e_.square_plus_one(x)};
      made.push_back(next[below(8)]);
    }
    NormalForms forms(terms_);
    for (const TermId& x : made)
      for (const TermId& y : made) {
        const TermRelation found = relation_between(forms, x, y);
        if (found.relation != Relation::AnotherSum) {
          EXPECT_EQ(e_.at(y), e_.at(x) * found.factor);
        }
        // A rewrite that the rules cover.
        const TermId z = any();
        EXPECT_EQ(relation_between(forms, e_.over(e_.add(e_.add(x, y), z), 3),
                                   e_.add(e_.over(e_.add(z, x), 3), e_.over(y, 3)))
                      .relation,
                  Relation::SameSum);
      }
  }
}

TEST(RationalOf, TheFractionThatAProgramMeant) {
  EXPECT_EQ(to_string(*rational_of(0.25)), "1/4");
  EXPECT_EQ(to_string(*rational_of(1.0 / 3.0)), "1/3");
  EXPECT_NE(*rational_of(1.0 / 3.0 + 1e-12), Rational(1, 3)) << "near, but no rounding of it";
  EXPECT_EQ(to_string(*rational_of(-3.0 * 4.0 / 10.0)), "-6/5");
  EXPECT_EQ(to_string(*rational_of(0.0)), "0");
  EXPECT_EQ(to_string(*rational_of(1e300)), to_string(Rational(1e300)));
  EXPECT_EQ(*rational_of(0.1234567890123456), Rational(0.1234567890123456)) << "no small fraction";
  EXPECT_EQ(to_string(*rational_of(std::string("1.5"))), "3/2");
  EXPECT_FALSE(rational_of(std::string("inf")));
  EXPECT_FALSE(rational_of(std::string("%")));
}

TEST(SumsText, EachKindIsCounted) {
  const Difference order{"a", {Relation::SameSum}, 0}, half{"b", {Relation::Multiple, Rational(1, 2)}, 1},
      twice{"c", {Relation::Multiple, 2}, 0}, other{"d", {Relation::AnotherSum}, 0};
  EXPECT_EQ(sums_text({}), "");
  EXPECT_EQ(sums_text({order, order}), "all 2 are the expected sum in another order");
  EXPECT_EQ(sums_text({half}), "1 is 1/2 of the expected sum (stage 1)");
  EXPECT_EQ(sums_text({other, twice, half, order, half}),
            "1 is the expected sum in another order, 2 are 1/2 of the expected sum (stage 1), 1 is 2 times the "
            "expected sum (stage 0), 1 is another sum");
}

}  // namespace
}  // namespace plumbline::proof
