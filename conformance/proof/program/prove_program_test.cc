// Steps of archives from torch.export are proven as they are; a changed stage is refuted.
#include "conformance/proof/program/prove_program.h"

#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "conformance/program/step.h"
#include "conformance/proof/program/program_model.h"
#include "runtime/capture/pt2/testing/archives.h"
#include "runtime/testing/refusal.h"

namespace plumbline::proof {
namespace {

program::ProgramOptions options_of(const std::string& archive, const std::string& schedule, const std::string& module,
                                   const std::string& loss = "") {
  program::ProgramOptions options;
  options.program = capture::pt2::testdata(archive) / "model.pt2";
  options.schedule = schedule;
  options.split.points = {module};
  options.microbatches = 3;
  options.loss = loss;
  return options;
}

TEST(ProveProgram, ArchivesAreProven) {
  const std::vector<std::array<std::string, 3>> archives = {
      {"tied", "head", "mse:TARGET"},  {"no_grad", "second", "sum"},        {"no_grad-211", "second", "sum"},
      {"cond", "last", "sum"},         {"in_place", "second", "sum"},       {"in_place-211", "second", "sum"},
      {"keywords", "second", "sum"},   {"autocast", "last", "sum"},         {"twice", "between", "sum"},
      {"twice", "last", ""},           {"embedding", "body", "mse:TARGET"}, {"views", "second", "sum"},
      {"buffer_out", "second", "sum"}, {"average", "second", "sum"},        {"number_first", "second", "output:1"},
  };
  for (const auto& [archive, module, loss] : archives)
    for (const std::string schedule : {"1f1b", "gpipe", "zb-h1"}) {
      std::ostringstream out;
      EXPECT_EQ(testing::failure([&] {
                  EXPECT_EQ(prove_program(options_of(archive, schedule, module, loss), Claim::SameComputation, out), 0)
                      << out.str();
                }),
                "accepted")
          << archive << " under " << schedule;
    }
}

TEST(ProveProgram, WorkForABranchWithoutAGradientIsTold) {
  // One branch of its cond has no gradient: there the program ends its backward, and stage 1 computes a gradient for
  // stage 0 that has no use.
  std::ostringstream out;
  EXPECT_EQ(prove_program(options_of("branches", "1f1b", "second", "sum"), Claim::SameComputation, out), 1);
  testing::expect_part(out.str(),
                       "stage 1, micro-batch 0 (B): aten::mm is executed 3 times for the same operands, 1 in");
}

/// The proof of a step whose stages are those of `changed`.
Proof proof_with(const program::ProgramStep& step, const program::ProgramStep& changed) {
  ProofOptions how;
  how.boundaries = false;
  how.schedule = conformance::make_schedule(step.schedule, step.ranks, step.batch.microbatches);
  how.fault = [&](const conformance::FaultSite&) { return with_program_stages(changed); };
  add_program("program", step);
  return prove(program_case("program", step), how);
}

TEST(ProveProgram, ASwappedPairOfOperandsIsRefuted) {
  const program::ProgramStep step = program::make_step(options_of("twice", "1f1b", "between"), 0);
  EXPECT_EQ(proof_with(step, step).outcome, Outcome::Proven);
  int tried = 0;
  for (size_t stage = 0; stage < step.prepared.pipe.stages.size(); ++stage)
    for (size_t node = 0; node < step.prepared.pipe.stages[stage].graph.nodes.size(); ++node) {
      program::ProgramStep changed = step;
      std::vector<graph::Argument>& arguments = changed.prepared.pipe.stages[stage].graph.nodes[node].arguments;
      if (arguments.size() < 2 || arguments[0].kind != graph::Argument::Kind::Value ||
          arguments[1].kind != graph::Argument::Kind::Value || arguments[0].values == arguments[1].values)
        continue;
      std::swap(arguments[0], arguments[1]);
      EXPECT_NE(proof_with(step, changed).outcome, Outcome::Proven) << "stage " << stage << ", node " << node;
      ++tried;
    }
  EXPECT_GT(tried, 0);
}

TEST(ProveProgram, AnExchangedParameterIsRefutedThoughItsNumbersAreEqual) {
  const program::ProgramStep step = program::make_step(options_of("twice", "1f1b", "between"), 0);
  program::ProgramStep changed = step;
  std::vector<graph::Attribute*> parameters;
  for (split::Stage& stage : changed.prepared.pipe.stages)
    for (graph::Attribute& attribute : stage.graph.attributes)
      if (attribute.kind == graph::AttributeKind::Parameter) parameters.push_back(&attribute);
  graph::Attribute *one = nullptr, *other = nullptr;
  for (graph::Attribute* a : parameters)
    for (graph::Attribute* b : parameters)
      if (a != b && a->tensor.sizes() == b->tensor.sizes()) one = a, other = b;
  ASSERT_NE(one, nullptr);
  {
    const c10::NoGradGuard no_grad;
    one->tensor.copy_(other->tensor);  // also in the program, whose tensors these are
  }
  EXPECT_EQ(proof_with(step, step).outcome, Outcome::Proven);
  std::swap(one->name, other->name);
  EXPECT_EQ(proof_with(step, changed).outcome, Outcome::Refuted);
}

TEST(ProveProgram, WhatAProofDoesNotTakeIsToldInOneLine) {
  program::ProgramOptions replicated = options_of("tied", "1f1b", "head", "mse:TARGET");
  replicated.split.shared = {"replicate"};
  std::ostringstream out;
  testing::expect_part(testing::refusal([&] { prove_program(replicated, Claim::SameComputation, out); }),
                       "--shared transmit gives it to one");
}

}  // namespace
}  // namespace plumbline::proof
