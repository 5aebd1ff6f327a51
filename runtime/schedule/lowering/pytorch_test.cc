#include "runtime/schedule/lowering/pytorch.h"

#include <gtest/gtest.h>

#include <sstream>

#include "runtime/error.h"
#include "runtime/schedule/lowering/passes.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/goldens.h"
#include "runtime/schedule/testing/merge_backward.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

// The options of a form such as comms,defer_pp_recv,max_active_stages=2.
PytorchLowering knobs_of(const std::string& form) {
  PytorchLowering options;
  std::istringstream words(form);
  std::string word;
  std::getline(words, word, ',');
  while (std::getline(words, word, ',')) {
    const std::string value = word.substr(word.find('=') + 1);
    if (word == "defer_pp_recv") options.defer_pp_recv = true;
    if (word == "defer_reduce_grad_wait") options.defer_reduce_grad_wait = true;
    if (word.starts_with("max_active_stages=")) options.max_active_stages = std::stoi(value);
    if (word.starts_with("unshard_lookahead=")) options.unshard_lookahead = value;
    if (word.starts_with("max_outstanding_sends=")) options.max_outstanding_sends = std::stoi(value);
  }
  return options;
}

std::string hash_of(const testing::Golden& golden) {
  const Schedule compute = make_schedule(golden.request);
  try {
    if (golden.form == "compute,merge_bw") return testing::fnv1a(to_csv(testing::merge_backward_halves(compute)));
    const Schedule lowered = lower_as_pytorch(compute, chain_edges(compute.stages), knobs_of(golden.form));
    return testing::fnv1a(to_csv(lowered));
  } catch (const InputError&) {
    return "refused";
  }
}

TEST(LowerAsPytorch, EqualCellByCell) {
  int compared = 0, refused = 0;
  for (const testing::Golden& golden : testing::pytorch_goldens()) {
    if (golden.form == "compute") continue;
    EXPECT_EQ(hash_of(golden), golden.hash) << golden.line;
    ++compared;
    refused += golden.hash == "refused";
  }
  EXPECT_GE(compared, 800);
  EXPECT_GE(refused, 1);
}

TEST(LowerAsPytorch, OneInFull) {
  const Schedule compute = make_schedule({.name = "zb-v", .ranks = 2, .microbatches = 3});
  EXPECT_EQ(
      to_csv(lower_as_pytorch(compute, chain_edges(4))),
      "0UNSHARD,3UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,0F2,0SEND_F2,3F0,3RECV_F1,3I0,3SEND_B0,3W0,3F1,3I1,3SEND_"
      "B1,"
      "0RECV_B0,3W1,0I0,0WAIT_SEND_F0,3RECV_F2,0W0,3F2,3I2,3SEND_B2,0RECV_B1,3W2,3REDUCE_GRAD,0RECV_B2,"
      "3WAIT_REDUCE_GRAD,3RESHARD,0I1,0WAIT_SEND_F1,0W1,0I2,0WAIT_SEND_F2,0W2,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD,"
      "3WAIT_SEND_B0,3WAIT_SEND_B1,3WAIT_SEND_B2\r\n"
      "1UNSHARD,2UNSHARD,1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1RECV_F2,1F1,2F1,2SEND_F1,2RECV_B0,2I0,2WAIT_SEND_F0,2W0,"
      "1F2,2RECV_B1,1I0,1SEND_B0,1W0,2F2,2SEND_F2,2I1,2WAIT_SEND_F1,2W1,2RECV_B2,1I1,1SEND_B1,2I2,2WAIT_SEND_F2,1I2,"
      "1SEND_B2,1W1,2W2,2REDUCE_GRAD,2WAIT_REDUCE_GRAD,2RESHARD,1W2,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,"
      "1WAIT_SEND_B0,1WAIT_SEND_B1,1WAIT_SEND_B2\r\n");
}

TEST(LowerAsPytorch, Refuses) {
  const auto refused = [](std::string_view text, const PytorchLowering& options = {}) {
    try {
      lower_as_pytorch(parse_csv(text, "s"), chain_edges(2), options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused("0F0,0SEND_F0\n1F0\n"),
            "schedule s: rank 0, position 1 (0SEND_F0): only F, B, I and W can be lowered");
  EXPECT_EQ(refused("0F0,0B0\n1UNSHARD,1F0,1B0\n"),
            "schedule s: rank 1, position 0 (1UNSHARD): only F, B, I and W can be lowered");
  EXPECT_EQ(refused("0F0,0B0\n1F0,1B0\n", {.max_active_stages = 0}), "max_active_stages is 0; at least 1 is needed");
}

}  // namespace
}  // namespace plumbline::schedule
