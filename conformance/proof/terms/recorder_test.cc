#include "conformance/proof/terms/recorder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/proof/executions/wire.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::proof {
namespace {

/// Terms of a few operators on one leaf.
class RecorderTerms : public ::testing::Test {
 protected:
  RecorderTerms() { recorder_.name_leaf(x_, "input", "x"); }

  TermId term(const at::Tensor& tensor) { return recorder_.term_of(tensor); }

  Terms terms_;
  Occurrences occurrences_{terms_};
  Recorder recorder_{terms_, occurrences_, -1};
  const capture::InterposerScope observing_{recorder_};
  const at::Tensor x_ = at::arange(6, at::kFloat).reshape({2, 3});
};

TEST_F(RecorderTerms, ViewsAndCopiesComputeNothing) {
  const at::Tensor turned = x_.t().contiguous();
  EXPECT_NE(term(turned), term(x_));
  EXPECT_EQ(term(turned.t()), term(x_));
  EXPECT_EQ(term(turned), term(x_.t()));
  EXPECT_EQ(term(x_.reshape({6}).clone().view({2, 3})), term(x_));
  EXPECT_EQ(term(x_.select(0, 1).clone()), term(x_.slice(0, 1).squeeze(0)));
  EXPECT_NE(term(x_.select(0, 1)), term(x_.select(0, 0)));
  EXPECT_EQ(term(at::sum(x_.t().contiguous().t())), term(at::sum(x_)));
}

TEST_F(RecorderTerms, OperatorOperandsAndArgumentsCount) {
  const at::Tensor y = x_.abs();
  EXPECT_EQ(term(y), term(at::abs(x_)));
  EXPECT_NE(term(y), term(at::neg(x_)));
  EXPECT_NE(term(at::sub(x_, y)), term(at::sub(y, x_)));
  EXPECT_NE(term(at::mul(x_, 2)), term(at::mul(x_, 3)));
  EXPECT_NE(term(at::sum(x_, 0)), term(at::sum(x_, 1)));
  // In numbers these are equal: x is not negative.
  EXPECT_TRUE(at::equal(y, x_));
  EXPECT_NE(term(y), term(x_));
}

TEST_F(RecorderTerms, ComplexNumbersAreThoseOfTheirOperators) {
  const at::Tensor z = at::view_as_complex(x_.reshape({3, 2})), twice = at::add(z, z);
  EXPECT_EQ(term(at::view_as_real(z)), term(x_.reshape({3, 2})));
  EXPECT_EQ(term(at::view_as_real(twice).clone()), term(at::view_as_real(twice)));
  EXPECT_NE(term(at::view_as_real(twice)), term(at::view_as_real(twice).select(1, 0)));
  const at::Tensor y = x_.abs(), copied = at::view_as_complex(y.reshape({3, 2})).clone();
  EXPECT_EQ(term(at::view_as_real(copied)), term(y.reshape({3, 2}))) << "bits of bits";
  // In numbers these are equal.
  EXPECT_TRUE(at::equal(twice, at::mul(z, 2)));
  EXPECT_NE(term(at::view_as_real(twice)), term(at::view_as_real(at::mul(z, 2))));
}

TEST_F(RecorderTerms, AConjugatedViewIsNotItsMemory) {
  const at::Tensor z = at::view_as_complex(x_.reshape({3, 2})), w = at::mul(z, 2);
  EXPECT_NE(term(z.conj()), term(z));
  EXPECT_EQ(term(z.conj()), term(z.conj().clone()));
  EXPECT_EQ(term(z.conj()), term(z.conj().resolve_conj()));
  EXPECT_EQ(term(z.conj().conj()), term(z));
  EXPECT_NE(term(at::add(z.conj(), w)), term(at::add(z, w)));
  EXPECT_NE(term(at::view_as_real(w.conj().resolve_conj())), term(at::view_as_real(w)));
  EXPECT_NE(term(at::_neg_view(x_)), term(x_));
}

TEST_F(RecorderTerms, AFillHasItsSizes) {
  EXPECT_EQ(term(at::zeros({2, 3})), term(at::full({2, 3}, 0.0)));
  EXPECT_NE(term(at::zeros({2, 3})), term(at::zeros({3, 2})));
  EXPECT_NE(term(at::sum(at::ones({8}))), term(at::sum(at::ones({16}))));
}

TEST_F(RecorderTerms, AnOperatorInPlaceIsItsFunctionalForm) {
  at::Tensor sum = x_.clone();
  sum.add_(x_.abs());
  EXPECT_EQ(term(sum), term(at::add(x_, x_.abs())));
  sum.zero_();
  EXPECT_EQ(term(sum), term(at::zeros({2, 3})));
}

TEST_F(RecorderTerms, AWriteThroughAViewIsAWriteToTheWhole) {
  at::Tensor a = x_.clone(), b = x_.clone(), c = x_.clone();
  a.select(0, 1).zero_();
  b.select(0, 1).zero_();
  c.select(0, 0).zero_();
  EXPECT_NE(term(a), term(x_));
  EXPECT_EQ(term(a), term(b));
  EXPECT_NE(term(a), term(c));
  EXPECT_EQ(term(x_.select(0, 0)), term(x_.clone().select(0, 0)));  // x itself is as it was
}

TEST_F(RecorderTerms, BytesWrittenByNoOperatorLoseTheirTerm) {
  const at::Tensor copy = x_.clone();
  EXPECT_EQ(term(copy), term(x_));
  const float other = 7;
  std::memcpy(copy.mutable_data_ptr(), &other, sizeof other);
  EXPECT_NE(term(copy), term(x_));
  EXPECT_EQ(terms_.at(term(copy)).op, "constant");
  EXPECT_GT(recorder_.take_log().unseen_writes, 0);
}

TEST_F(RecorderTerms, AZeroThatIsAddedChangesNothingButOneThatIsSubtractedFromDoes) {
  EXPECT_EQ(term(at::add(x_, at::zeros_like(x_))), term(x_));
  EXPECT_EQ(recorder_.take_log().zeros, 1);
  EXPECT_NE(term(at::add(x_, at::ones_like(x_))), term(x_));
  EXPECT_NE(term(at::sub(at::zeros_like(x_), x_)), term(x_));
  EXPECT_NE(term(at::add(x_, at::zeros({1, 3}))), term(x_));  // another size: not the rule
}

TEST_F(RecorderTerms, RandomDrawsAreToldApartByTheStateOfTheGenerator) {
  at::manual_seed(3);
  const TermId first = term(at::bernoulli(x_, 0.5)), second = term(at::bernoulli(x_, 0.5));
  EXPECT_NE(first, second);
  at::manual_seed(3);
  EXPECT_EQ(term(at::bernoulli(x_, 0.5)), first);
  at::manual_seed(4);
  EXPECT_NE(term(at::bernoulli(x_, 0.5)), first);
}

TEST_F(RecorderTerms, ABackwardIsSeenAndAccumulates) {
  const at::Tensor w = at::ones({3, 2}).requires_grad_();
  recorder_.name_leaf(w, "parameter", "w");
  at::mm(x_, w).sum().backward();
  const TermId once = term(w.grad());
  at::mm(x_, w).sum().backward();
  EXPECT_NE(term(w.grad()), once);
  EXPECT_EQ(terms_.at(term(w.grad())).op, "aten::add.Tensor");
  EXPECT_EQ(terms_.at(term(w.grad())).operands, (std::vector{once, once}));
}

/// Messages of one tag are told apart by their order, and a receive takes the sender's term.
TEST(RecorderWire, TermsTravelBesideMessages) {
  Terms terms;
  Occurrences occurrences(terms);
  Wire wire;
  std::vector<TermId> sent(2), received(2);
  transport::run_thread_ranks(2, [&](transport::Transport& plain) {
    Recorder recorder(terms, occurrences, plain.rank());
    const capture::InterposerScope observing(recorder);
    const auto transport = recording_transport(plain, recorder.memory(), wire);
    const auto deadline = transport::Deadline::after(std::chrono::seconds(10));
    std::vector<at::Tensor> tensors;
    std::vector<transport::Request> requests;
    for (int i = 0; i < 2; ++i) {
      // Equal numbers, so that only terms tell them apart.
      tensors.push_back(plain.rank() == 0 ? at::ones({2}) : at::empty({2}));
      if (plain.rank() == 0) {
        recorder.name_leaf(tensors[i], "input", std::to_string(i));
        sent[i] = recorder.term_of(tensors[i]);
        requests.push_back(transport->isend(tensors[i].const_data_ptr(), tensors[i].nbytes(), 1, 5));
      } else {
        requests.push_back(transport->irecv(tensors[i].mutable_data_ptr(), tensors[i].nbytes(), 0, 5));
      }
    }
    for (transport::Request& request : requests) transport->wait(request, deadline, "a test");
    if (plain.rank() == 1)
      for (int i = 0; i < 2; ++i) received[i] = recorder.term_of(tensors[i]);
  });
  EXPECT_NE(sent[0], sent[1]);
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace plumbline::proof
