// The answers about the steps of small programs, against what is known of each, and against numbers, as for cases of
// the corpus (same_step_test.cc).
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/proof/rows/same_step.h"
#include "reference/models/zoo.h"
#include "runtime/capture/call.h"
#include "runtime/testing/parameter_name.h"

namespace plumbline::proof {
namespace {

using Forward = std::function<at::Tensor(const at::Tensor& x, torch::nn::Linear& fc)>;

class Program : public torch::nn::Module {
 public:
  explicit Program(Forward forward) : forward_(std::move(forward)) {
    fc_ = register_module("fc", torch::nn::Linear(torch::nn::LinearOptions(3, 3)));
    fc_->register_buffer("count", at::ones({3}));
  }
  at::Tensor forward(const at::Tensor& x) { return forward_(x, fc_); }

 private:
  Forward forward_;
  torch::nn::Linear fc_ = nullptr;
};

/// The program's step: its result is the loss. Rows of 3 numbers, 4 micro-batches, each of weight 1, or with `mean` of
/// its share of rows.
StepProof prove_program(const std::string& name, const Forward& forward, bool mean, int rows = 8) {
  const auto make_model = [forward](reference::Dtype, uint64_t) {
    const auto module = std::make_shared<Program>(forward);
    models::Model model;
    model.module = module;
    model.forward = [module](const std::vector<at::Tensor>& in) {
      return std::vector<at::Tensor>{module->forward(in[0])};
    };
    model.input_names = {"x"};
    model.input_chunks.resize(1);
    return model;
  };
  const auto make_batch = [](reference::Dtype, int count, uint64_t, int) {
    return models::Batch{.inputs = {at::randn({count, 3})}, .targets = {}};
  };
  models::add_model(name, make_model, make_batch);
  reference::Case c;
  c.id = c.model = name;
  c.rows = rows;
  c.loss = {.kind = LossKind::Output, .reduction = mean ? Reduction::Mean : Reduction::Sum};
  c.division = mean ? reference::Division::Engine : reference::Division::Nobody;
  at::manual_seed(1);
  return prove_same_step(c, 1);
}

struct Step {
  const char* name;
  Forward forward;
  bool mean;  ///< whether a micro-batch's loss has its share of rows as weight
  StepAnswer answer;
  const char* because;  ///< a part of the reason
  int rows = 8;
};

using enum StepAnswer;

at::Tensor hidden(const at::Tensor& x, torch::nn::Linear& fc) { return capture::call(fc, x).tanh(); }

at::Tensor count_buffer(torch::nn::Linear& fc) { return fc->named_buffers()["count"]; }

at::Tensor multiplied_backward(const at::Tensor& value, int64_t number) {
  value.register_hook([number](const at::Tensor& gradient) { return gradient * number; });
  return value;
}

const Step kSteps[] = {
    {"sum", [](auto& x, auto& fc) { return hidden(x, fc).sum(); }, false, Same, ""},
    {"mean", [](auto& x, auto& fc) { return hidden(x, fc).mean(); }, true, Same, ""},
    {"mean with weight 1", [](auto& x, auto& fc) { return hidden(x, fc).mean(); }, false, Differs,
     "needs the weight 1/4 and gets 1"},
    {"sum with weights of a mean", [](auto& x, auto& fc) { return hidden(x, fc).sum(); }, true, Differs,
     "needs the weight 1 and gets 1/4"},
    {"mean by the number of rows", [](auto& x, auto& fc) { return hidden(x, fc).sum() / x.size(0); }, true, Same, ""},
    {"mean by a fixed number", [](auto& x, auto& fc) { return hidden(x, fc).sum() / 8; }, false, Same, ""},
    {"mean with a penalty", [](auto& x, auto& fc) { return hidden(x, fc).mean() + fc->weight.square().sum(); }, true,
     Same, ""},
    {"sum with a penalty", [](auto& x, auto& fc) { return hidden(x, fc).sum() + fc->weight.square().sum(); }, false,
     Differs, "which micro-batches weight otherwise than the sum"},
    {"mean over a mask",
     [](auto& x, auto& fc) {
       const at::Tensor mask = (x > 0).to(at::kDouble);
       return (hidden(x, fc) * mask).sum() / mask.sum();
     },
     true, Differs, "needs the weight"},
    {"square of the mean", [](auto& x, auto& fc) { return hidden(x, fc).mean(0).square().sum(); }, true, Differs,
     "aten::pow.Tensor_Scalar: is not linear in operand 0, a sum over the rows"},
    {"centred by the batch", [](auto& x, auto& fc) { return hidden(x - x.mean(0), fc).sum(); }, false, Differs,
     "aten::sub.Tensor: rows of operand 0 meet a sum over all rows, operand 1"},
    {"in-batch contrast",
     [](auto& x, auto& fc) {
       const at::Tensor h = hidden(x, fc);
       return -at::mm(h, h.t()).log_softmax(1).diagonal().sum();
     },
     false, Differs, "aten::mm: rows of operand 0 meet other rows of operand 1"},
    {"running sum over rows", [](auto& x, auto& fc) { return hidden(x.cumsum(0), fc).sum(); }, false, Differs,
     "aten::cumsum: mixes rows"},
    {"neighbours", [](auto& x, auto& fc) { return hidden(x - x.roll({1}, {0}), fc).sum(); }, false, Differs,
     "aten::roll: mixes rows"},
    {"the first row", [](auto& x, auto& fc) { return hidden(x + x.narrow(0, 0, 1), fc).sum(); }, false, Differs,
     "some rows are chosen, as many for the whole batch as for a micro-batch"},
    {"halves of the batch", [](auto& x, auto& fc) { return hidden(x, fc).view({2, -1, 3}).select(0, 0).sum(); }, false,
     Differs, "micro-batch 0 arranges its rows in another way"},
    {"a table cut to the rows",
     [](auto& x, auto& fc) {
       return (hidden(x, fc) * at::cat({fc->weight, fc->weight * 2, fc->weight * 3}).narrow(0, 0, x.size(0))).sum();
     },
     false, Differs, "a value without rows is cut to the number of rows"},
    {"row numbers",
     [](auto& x, auto& fc) { return (hidden(x, fc) * at::arange(x.size(0), at::kDouble).unsqueeze(1)).sum(); }, false,
     Differs, "aten::arange: its argument end differs"},
    {"a branch on the rows",
     [](auto& x, auto& fc) { return x.size(0) > 4 ? hidden(x, fc).sum() : hidden(x, fc).sin().sum(); }, false, Differs,
     "the program runs another operator here for micro-batch 0"},
    {"a number that leaves the tensors",
     [](auto& x, auto& fc) { return hidden(x, fc).sum() * x.sum().item().toDouble(); }, false, Differs,
     "a number differs between the whole batch and its micro-batches"},
    {"dropout", [](auto& x, auto& fc) { return at::dropout(hidden(x, fc), 0.5, true).sum(); }, false, Differs,
     "random numbers are drawn"},
    {"another dimension first",
     [](auto& x, auto& fc) { return hidden(x, fc).t().contiguous().softmax(0).square().sum(); }, false, Same, ""},
    {"softmax over the batch", [](auto& x, auto& fc) { return hidden(x, fc).softmax(0).square().sum(); }, false,
     Differs, "aten::_softmax: mixes rows"},
    {"a token before the row",
     [](auto& x, auto& fc) {
       const at::Tensor token = fc->bias.expand({x.size(0), 1, 3});
       return at::cat({token, hidden(x, fc).unsqueeze(1)}, 1).softmax(1).square().sum();
     },
     false, Same, ""},
    {"the product of rows", [](auto& x, auto& fc) { return hidden(x, fc).prod(0).sum(); }, false, Differs,
     "aten::prod.dim_int: mixes rows"},
    {"sum times the number of rows", [](auto& x, auto& fc) { return hidden(x, fc).sum() * x.size(0); }, false, Differs,
     "needs the weight 4 and gets 1"},
    {"divided twice by the number of rows",
     [](auto& x, auto& fc) { return hidden(x, fc).sum() / x.size(0) / x.size(0); }, false, Differs,
     "needs the weight 1/16 and gets 1"},
    {"a mean and a sum", [](auto& x, auto& fc) { return hidden(x, fc).mean() + hidden(x, fc).sum(); }, false, Differs,
     "aten::add.Tensor: adds operand 1, which micro-batches weight otherwise"},
    {"a penalty times the number of rows",
     [](auto& x, auto& fc) { return hidden(x, fc).mean() + fc->weight.square().sum() * x.size(0); }, true, Differs,
     "aten::add.Tensor: adds operand 1, which micro-batches weight otherwise"},
    {"the product of two sums", [](auto& x, auto& fc) { return (hidden(x, fc).sum(0) * x.sum(0)).sum(); }, false,
     Differs, "aten::mul.Tensor: multiplies two sums over the rows"},
    {"rows times a sum", [](auto& x, auto& fc) { return (hidden(x, fc) * x.sum(0)).sum(); }, false, Differs,
     "aten::mul.Tensor: rows of operand 0 meet a sum over all rows, operand 1"},
    {"rows of two weights", [](auto& x, auto& fc) { return (hidden(x, fc) + x / x.size(0)).square().sum(); }, false,
     Differs, "aten::add.Tensor: operands 0 and 1 have different weights in a micro-batch"},
    {"columns of two weights",
     [](auto& x, auto& fc) {
       const at::Tensor columns = x.clone();
       columns.select(1, 0).copy_(x.select(1, 0) / x.size(0));
       return (hidden(x, fc) * columns).sum();
     },
     false, Differs, "an operand has parts of different weights"},
    {"rows divided before the activation", [](auto& x, auto& fc) { return hidden(x / x.size(0), fc).sum(); }, false,
     Differs, "which has another weight in a micro-batch"},
    {"a row divided before the activation",
     [](auto& x, auto& fc) { return (hidden(x, fc) * (x / x.size(0)).exp()).sum(); }, false, Differs,
     "aten::exp: is not linear in operand 0, which has another weight in a micro-batch"},
    {"a sum beside a parameter",
     [](auto& x, auto& fc) {
       const at::Tensor both = fc->bias.detach().clone();
       both.narrow(0, 0, 1).copy_(x.sum().reshape(1));
       return (hidden(x, fc).sum(0) * both).sum();
     },
     false, Differs, "an operand has rows, sums and values without rows side by side"},
    {"the first row is zero",
     [](auto& x, auto& fc) {
       const at::Tensor others = x.clone();
       others.narrow(0, 0, 1).zero_();
       return (hidden(x, fc) * others).sum();
     },
     false, Differs, "some slices of an operand belong to rows, others to none"},
    {"pairs of rows", [](auto& x, auto& fc) { return hidden(x, fc).view({-1, 6}).softmax(1).square().sum(); }, false,
     Undecided, "rows do not lie along one dimension of an operand"},
    {"every row with every other",
     [](auto& x, auto& fc) {
       const at::Tensor again = hidden(x, fc).expand({2, -1, -1}).reshape({-1, 3});
       return (again * x.unsqueeze(1).expand({-1, 2, -1}).reshape({-1, 3})).sum();
     },
     false, Differs, "aten::mul.Tensor: operands 0 and 1 arrange rows in different ways"},
    {"a micro-batch repeats its first row",
     [](auto& x, auto& fc) {
       return (hidden(x, fc) * x.narrow(0, 0, x.size(0) == 8 ? 8 : 1).expand({x.size(0), 3})).sum();
     },
     false, Differs, "micro-batch 0 arranges its rows in another way"},
    // 8 of the 9 rows, 2 of each micro-batch: their mean does not weigh them as 3, 2, 2 and 2.
    {"a mean of as many rows of each micro-batch",
     [](auto& x, auto& fc) { return hidden(x.narrow(0, x.size(0) % 2, x.size(0) / 2 * 2), fc).mean(); }, true, Differs,
     "aten::mean: averages over slices of which rows have different numbers", 9},
    {"a row more for the whole batch",
     [](auto& x, auto& fc) {
       const at::Tensor ones = at::ones({x.size(0) == 8 ? 9 : 2, 3}, at::kDouble);
       return hidden(x, fc).sum() + (ones.sum(0) * fc->bias).sum();
     },
     false, Differs, "micro-batch 0 arranges its rows in another way"},
    // A micro-batch has one row, and meets all of the table.
    {"a table that a row is broadcast to",
     [](auto& x, auto& fc) {
       return at::mse_loss(x, at::cat({fc->weight, fc->bias.unsqueeze(0)}), at::Reduction::Sum);
     },
     false, Differs, "aten::mse_loss: operand 1 has no rows where operand 0 has them", 4},
    {"softmax over as many zeros as rows",
     [](auto& x, auto& fc) { return (hidden(x, fc) * at::zeros({x.size(0), 3}, at::kDouble).softmax(0)).sum(); }, false,
     Differs, "aten::_softmax: a result has other sizes"},
    {"filled with the number of rows",
     [](auto& x, auto& fc) { return (hidden(x, fc) * at::full({3}, x.size(0), at::kDouble)).sum(); }, false, Differs,
     "fills with a number that differs between micro-batches"},
    {"a tensor of the program's numbers",
     [](auto& x, auto& fc) {
       double number = static_cast<double>(x.size(0));
       return (hidden(x, fc) * at::from_blob(&number, {1}, at::kDouble).clone()).sum();
     },
     false, Differs, "aten::clone: an operand that no operator made differs"},
    {"memory that the program writes",
     [](auto& x, auto& fc) {
       at::Tensor numbers = at::empty({3}, at::kDouble);
       numbers.template data_ptr<double>()[2] = static_cast<double>(x.size(0));
       numbers.narrow(0, 0, 2).fill_(1);
       return (hidden(x, fc) * numbers).sum();
     },
     false, Differs, "an operand has elements that no operator wrote"},
    {"statistics of the rows",
     [](auto& x, auto& fc) {
       at::Tensor mean = at::zeros({3}, at::kDouble), variance = at::ones({3}, at::kDouble);
       at::_native_batch_norm_legit(x, {}, {}, mean, variance, true, 0.1, 1e-5);
       return (hidden(x, fc) * mean).sum();
     },
     false, Differs, "aten::_native_batch_norm_legit: an operand is written for each micro-batch"},
    {"a sum as whole numbers",
     [](auto& x, auto& fc) { return (x.sum(0).to(at::kLong).to(at::kDouble) * fc->bias).sum(); }, false, Differs,
     "aten::_to_copy: rounds a sum over the rows"},
    {"halves of the numbers of a sum",
     [](auto& x, auto& fc) {
       return (x.sum(0).view(at::kInt).narrow(0, 0, 3).to(at::kDouble) * fc->bias * 1e-9).sum();
     },
     false, Differs, "an operand has elements that no operator wrote"},
    {"a branch on a number",
     [](auto& x, auto& fc) {
       return x.sum().item().toDouble() > 1e9 ? hidden(x, fc).sin().sum() : hidden(x, fc).sum();
     },
     false, Undecided, "a number that depends on rows leaves the tensors"},
    {"a count that is added to",
     [](auto& x, auto& fc) {
       at::Tensor count = x.square().sum();
       const at::Tensor first = x / count;
       count.add_(x.exp().sum());
       return (hidden(x, fc) * first / (at::ones({}, at::kDouble) / count)).sum();
     },
     false, Differs, "of micro-batch 0 needs the weight"},
    {"a gradient times the number of rows",
     [](auto& x, auto& fc) { return multiplied_backward(hidden(x, fc), x.size(0)).sum(); }, false, Differs,
     "is no sum of the micro-batches' gradients"},
    {"a penalty's gradient times the number of rows",
     [](auto& x, auto& fc) { return x.mean() + multiplied_backward(fc->bias * 2, x.size(0)).sum(); }, true, Differs,
     "the gradient of fc.bias"},
    {"a penalty alone", [](auto&, auto& fc) { return fc->weight.square().sum(); }, true, Same, ""},
    {"a penalty alone with weight 1", [](auto&, auto& fc) { return fc->weight.square().sum(); }, false, Differs,
     "needs the weight 1/4 and gets 1"},
    {"a parameter of the whole batch alone",
     [](auto& x, auto& fc) {
       const at::Tensor copy = fc->bias.detach().clone().requires_grad_();
       return (at::mm(x, fc->weight.t()) + (x.size(0) == 8 ? fc->bias : copy)).tanh().sum();
     },
     false, Differs, "fc.bias: defined for the whole batch or for a micro-batch, but not for both"},
    {"a loss without gradients", [](auto& x, auto&) { return x.sum().square(); }, false, Undecided,
     "aten::pow.Tensor_Scalar: is not linear in operand 0, a sum over the rows"},
    {"an operator without a lemma", [](auto& x, auto& fc) { return hidden(x, fc).lgamma().sum(); }, false, Undecided,
     "aten::lgamma: there is no lemma about this operator"},
};

/// Each of these steps differs from that of the whole batch, by ways of which types of values know little: other
/// operands for a micro-batch, memory that changes without an operator, arguments of views.
const Step kBesideTypes[] = {
    {"another tensor for a micro-batch",
     [](auto& x, auto& fc) {
       const at::Tensor twice = x * 2, thrice = x * 3;
       return (hidden(x, fc) * (x.size(0) == 8 ? twice : thrice)).sum();
     },
     false, Differs, ""},
    {"another column for a micro-batch",
     [](auto& x, auto& fc) { return (hidden(x, fc).select(1, 0) * x.select(1, x.size(0) == 8 ? 0 : 1)).sum(); }, false,
     Differs, ""},
    {"ones but for the first row",
     [](auto& x, auto& fc) {
       const at::Tensor mask = at::ones({x.size(0), 3}, at::kDouble);
       mask.narrow(0, 0, 1).zero_();
       return (hidden(x, fc) * mask).sum();
     },
     false, Differs, ""},
    {"a zero in the first row",
     [](auto& x, auto& fc) {
       const at::Tensor others = x.clone();
       others.narrow(0, 0, 1).narrow(1, 0, 1).zero_();
       return (hidden(x, fc) * others).sum();
     },
     false, Differs, ""},
    {"an embedding scaled by frequency",
     [](auto& x, auto& fc) {
       return (at::embedding(fc->weight, (x.select(1, 0) > 0).to(at::kLong), -1, true) * x).sum();
     },
     false, Differs, ""},
    {"a roll without dimensions", [](auto& x, auto& fc) { return (hidden(x, fc) * x.roll({1})).sum(); }, false, Differs,
     ""},
    {"a result written to a tensor",
     [](auto& x, auto& fc) {
       at::Tensor out = at::zeros({3}, at::kDouble);
       at::sum_out(out, x, at::IntArrayRef{0});
       return (hidden(x, fc) * out).sum();
     },
     false, Differs, ""},
    {"a result written to a buffer",
     [](auto& x, auto& fc) {
       at::Tensor count = count_buffer(fc);
       at::mul_out(count, count, at::full({3}, 2.0, at::kDouble));
       return hidden(x, fc).sum();
     },
     false, Differs, ""},
    {"a buffer replaced",
     [](auto& x, auto& fc) {
       at::Tensor count = count_buffer(fc);
       count.set_data(count + 1);
       return hidden(x, fc).sum();
     },
     false, Differs, ""},
    {"a buffer written by the program",
     [](auto& x, auto& fc) {
       count_buffer(fc).template data_ptr<double>()[0] += 1;
       return hidden(x, fc).sum();
     },
     false, Differs, ""},
    {"running statistics of a parameter",
     [](auto& x, auto& fc) {
       const at::Tensor mean = count_buffer(fc), variance = at::ones({3}, at::kDouble);
       const at::Tensor normed = at::batch_norm(fc->weight, {}, {}, mean, variance, true, 0.1, 1e-5, false);
       return (hidden(x, fc).sum(0) * normed.sum(0).cos()).sum();
     },
     false, Differs, ""},
    {"zeros written by the program",
     [](auto& x, auto& fc) {
       at::Tensor number = at::zeros({1}, at::kDouble);
       number.template data_ptr<double>()[0] = static_cast<double>(x.size(0));
       return (hidden(x, fc) * number).sum();
     },
     false, Differs, ""},
    {"logsumexp of as many zeros as rows",
     [](auto& x, auto& fc) {
       return (hidden(x, fc) * at::logsumexp(at::zeros({x.size(0), 3}, at::kDouble), at::IntArrayRef{0})).sum();
     },
     false, Differs, ""},
    {"a sum of whole numbers",
     [](auto& x, auto& fc) { return hidden(x, fc).sum() + x.sum(0).sum(at::kLong).to(at::kDouble) * fc->bias.sum(); },
     false, Differs, ""},
    {"another dtype for a micro-batch",
     [](auto& x, auto& fc) { return (hidden(x, fc) * (x * 2).to(x.size(0) == 8 ? at::kFloat : at::kLong)).sum(); },
     false, Differs, ""},
    {"bits of a sum",
     [](auto& x, auto& fc) { return (x.sum(0).view(at::kLong).to(at::kDouble) * 1e-18 * fc->bias).sum(); }, false,
     Differs, ""},
};

class SameStepOf : public ::testing::TestWithParam<Step> {};

TEST_P(SameStepOf, Program) {
  const Step& step = GetParam();
  const StepProof proof = prove_program(step.name, step.forward, step.mean, step.rows);
  EXPECT_EQ(proof.answer, step.answer) << proof.why;
  EXPECT_NE(proof.why.find(step.because), std::string::npos) << proof.why;
  // The numbers, which the answer about types does not read.
  if (step.answer == Differs)
    EXPECT_GE(proof.difference, 1e-3);
  else
    EXPECT_LE(proof.difference, 1e-12);
}

std::string step_name(const ::testing::TestParamInfo<Step>& info) {
  return testing::ParameterName()(::testing::TestParamInfo<const char*>(info.param.name, info.index));
}

INSTANTIATE_TEST_SUITE_P(BesideTypes, SameStepOf, ::testing::ValuesIn(kBesideTypes), step_name);
INSTANTIATE_TEST_SUITE_P(Programs, SameStepOf, ::testing::ValuesIn(kSteps), step_name);

}  // namespace
}  // namespace plumbline::proof
