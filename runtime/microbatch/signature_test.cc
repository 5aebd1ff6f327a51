// Expected values are the results of Python's inspect.Signature.bind and apply_defaults for the same signature and
// call.
#include "runtime/microbatch/signature.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "runtime/error.h"

namespace plumbline::microbatch {
namespace {

at::Tensor number(int n) { return at::full({}, n, at::kLong); }

using Positional = std::vector<int>;
using Keyword = std::map<std::string, int>;

/// "x=1 rest.0=2", or the error of a refused call. 0 stands for an undefined tensor.
std::string bound(const Signature& signature, const Positional& positional, const Keyword& keyword = {}) try {
  const auto tensor = [](int n) { return n == 0 ? at::Tensor() : number(n); };
  std::vector<at::Tensor> tensors;
  std::map<std::string, at::Tensor> named;
  for (int n : positional) tensors.push_back(tensor(n));
  for (const auto& [name, n] : keyword) named[name] = tensor(n);
  std::string text;
  for (const capture::NamedTensor& input : signature.bind(tensors, named))
    text += (text.empty() ? "" : " ") + input.name + "=" +
            (input.tensor.defined() ? std::to_string(input.tensor.item<int64_t>()) : "None");
  return text;
} catch (const InputError& error) {
  return error.what();
}

TEST(TestIr, PipeForwardKwargs) {
  const Signature one_default{{{"x"}, {"y", ParameterKind::PositionalOrKeyword, number(2)}}};
  EXPECT_EQ(bound(one_default, {1}), "x=1 y=2");
  EXPECT_EQ(bound(one_default, {1}, {{"y", 3}}), "x=1 y=3");
  EXPECT_EQ(bound(one_default, {1, 4}), "x=1 y=4");
  EXPECT_EQ(bound(one_default, {}, {{"y", 4}, {"x", 7}}), "x=7 y=4");
  EXPECT_EQ(bound(one_default, {1}, {{"z", 100}}), "inputs: the model has no input 'z'; it takes (x, y=default)");
  EXPECT_EQ(bound(one_default, {1}, {{"y", 3}, {"a", 1}, {"c", 1}}),
            "inputs: the model has no input 'a'; it takes (x, y=default)");
  EXPECT_EQ(bound(one_default, {1, 4}, {{"y", 100}}),
            "inputs: 'y' is given twice, by position and by name; the model takes (x, y=default)");
  EXPECT_EQ(bound(one_default, {}, {{"y", 4}}), "inputs: 'x' is missing; the model takes (x, y=default)");
  EXPECT_EQ(bound(one_default, {1, 2, 3}), "inputs: 3 positional inputs given, the model takes 2: (x, y=default)");

  const Signature two_defaults{
      {{"x", ParameterKind::PositionalOrKeyword, number(1)}, {"y", ParameterKind::PositionalOrKeyword, number(2)}}};
  EXPECT_EQ(bound(two_defaults, {}), "x=1 y=2");
  EXPECT_EQ(bound(two_defaults, {2}), "x=2 y=2");
  EXPECT_EQ(bound(two_defaults, {}, {{"x", 3}}), "x=3 y=2");
  EXPECT_EQ(bound(two_defaults, {}, {{"y", 4}}), "x=1 y=4");
  EXPECT_EQ(bound(two_defaults, {3, 3}), "x=3 y=3");
  EXPECT_EQ(bound(two_defaults, {3}, {{"y", 4}}), "x=3 y=4");
  EXPECT_EQ(bound(two_defaults, {}, {{"x", 4}, {"y", 4}}), "x=4 y=4");
  EXPECT_EQ(bound(two_defaults, {}, {{"b", 1}}), "inputs: the model has no input 'b'; it takes (x=default, y=default)");
  EXPECT_EQ(bound(two_defaults, {1, 2}, {{"x", 3}, {"y", 4}}),
            "inputs: 'x' is given twice, by position and by name; the model takes (x=default, y=default)");
}

TEST(TestIr, KwargDoubleStar) {
  const Signature signature = Signature::from_placeholders({"x", "**extra"});
  EXPECT_EQ(signature.text(), "(x, **extra)");
  EXPECT_EQ(bound(signature, {1}), "x=1");
  EXPECT_EQ(bound(signature, {1}, {{"b", 3}, {"a", 2}}), "x=1 a=2 b=3");
  EXPECT_EQ(bound(signature, {}, {{"b", 3}, {"x", 1}}), "x=1 b=3");
  EXPECT_EQ(bound(signature, {1}, {{"extra", 5}}), "x=1 extra=5") << "its own name is a key like any other";
  EXPECT_EQ(bound(signature, {1}, {{"x", 5}}),
            "inputs: 'x' is given twice, by position and by name; the model takes (x, **extra)");
  EXPECT_EQ(bound(signature, {1, 2}), "inputs: 2 positional inputs given, the model takes 1: (x, **extra)");
  EXPECT_EQ(bound(signature, {}, {{"a", 2}}), "inputs: 'x' is missing; the model takes (x, **extra)");
}

TEST(Signature, AStarTakesAllPositionalInputsThatAreLeft) {
  const Signature signature = Signature::from_placeholders({"x", "*rest"});
  EXPECT_EQ(bound(signature, {1}), "x=1");
  EXPECT_EQ(bound(signature, {1, 2, 3}), "x=1 rest.0=2 rest.1=3");
  EXPECT_EQ(bound(signature, {1}, {{"rest", 2}}), "inputs: the model has no input 'rest'; it takes (x, *rest)");
  EXPECT_EQ(bound(Signature::from_placeholders({"*all"}), {}), "");
}

TEST(Signature, BehindAStarThereAreOnlyNames) {
  const Signature signature = Signature::from_placeholders({"x", "*rest", "y", "**extra"});
  EXPECT_EQ(bound(signature, {1, 2}, {{"y", 3}}), "x=1 rest.0=2 y=3");
  EXPECT_EQ(bound(signature, {1}, {{"y", 3}, {"z", 4}, {"rest", 5}}), "x=1 y=3 rest=5 z=4");
  EXPECT_EQ(bound(signature, {1, 2, 3}), "inputs: 'y' is missing; the model takes (x, *rest, y, **extra)");
  EXPECT_EQ(bound(signature, {1, 2}, {{"y", 3}, {"rest.0", 4}}),
            "inputs: 'rest.0' is given twice, by position and by name; the model takes (x, *rest, y, **extra)");
}

TEST(Signature, AnUndefinedTensorIsNotGivenAndMayBeADefault) {
  const Signature signature{{{"x"}, {"mask", ParameterKind::PositionalOrKeyword, at::Tensor()}}};
  EXPECT_EQ(bound(signature, {1}), "x=1 mask=None");
  EXPECT_EQ(bound(signature, {1, 0}), "x=1 mask=None");
  EXPECT_EQ(bound(signature, {0}, {{"x", 2}}), "x=2 mask=None");
  EXPECT_EQ(bound(signature, {0}), "inputs: 'x' is missing; the model takes (x, mask=default)");
  EXPECT_EQ(bound({}, {}), "");
}

TEST(Signature, RefusesWhatIsNone) {
  const auto of = [](const std::vector<std::string>& names) { return bound(Signature::from_placeholders(names), {}); };
  EXPECT_EQ(of({"x", "x"}), "inputs: the signature (x, x) has 'x' twice; give each input a name of its own");
  EXPECT_EQ(of({"**extra", "x"}),
            "inputs: the signature (**extra, x) continues after '**extra'; that must be the last");
  EXPECT_EQ(of({"*a", "*b"}), "inputs: the signature (*a, *b) has two '*'; one takes all that is left");
}

}  // namespace
}  // namespace plumbline::microbatch
