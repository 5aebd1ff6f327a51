#include "conformance/proof/rows/same_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "conformance/corpus/corpus.h"
#include "runtime/error.h"

namespace plumbline::proof {
namespace {

using conformance::find_case;

TEST(SameStep, Explore) {
  for (const reference::Case& c : conformance::corpus()) {
    try {
      const StepProof proof = prove_same_step(c, 1);
      std::cout << answer_name(proof.answer) << " " << c.id << " " << proof.difference << " " << proof.why << std::endl;
      if (!proof.weights.empty())
        std::cout << "   " << proof.weights[0].needed << " " << proof.weights[0].used << " " << proof.gradients.size() << std::endl;
    } catch (const InputError& error) {
      std::cout << "not taken " << c.id << " " << error.what() << std::endl;
    }
  }
}

}  // namespace
}  // namespace plumbline::proof
