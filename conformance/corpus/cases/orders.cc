// Schedules built into cases, which must be followed: micro-batches out of ascending order, uneven placements.
#include "conformance/corpus/cases/axes.h"

namespace plumbline::conformance::cases {

namespace {

/// Two ranks; forwards in one order, backwards in another.
constexpr const char* kOutOfOrder =
    "0F2,0F0,0F3,0F1,0B0,0B3,0B1,0B2\n"
    "1F2,1F0,1F3,1F1,1B0,1B3,1B1,1B2\n";

/// Two ranks; the last micro-batch first.
constexpr const char* kReversed =
    "0F3,0F2,0F1,0F0,0B0,0B1,0B2,0B3\n"
    "1F3,1F2,1F1,1F0,1B0,1B1,1B2,1B3\n";

/// Two ranks, four stages down and up again; three micro-batches at once, none of them in ascending order.
constexpr const char* kV =
    "0F1,0F0,3F1,3B1,0F3,3F0,3B0,0B1,0F2,0B0,3F3,3B3,3F2,3B2,0B3,0B2\n"
    "1F1,2F1,1F0,2F0,2B1,1B1,1F3,2F3,2B0,1B0,1F2,2F2,2B3,1B3,2B2,1B2\n";

/// Two ranks; input halves in one order, weight halves in another.
constexpr const char* kHalves =
    "0F0,0F1,0F2,0F3,0I1,0I0,0W0,0I3,0I2,0W3,0W1,0W2\n"
    "1F0,1F1,1I1,1F2,1I0,1F3,1I3,1W1,1I2,1W3,1W2,1W0\n";

/// Two ranks; some backwards whole, some split.
constexpr const char* kMixed =
    "0F0,0F1,0F2,0F3,0B0,0I1,0B2,0W1,0I3,0W3\n"
    "1F0,1B0,1F1,1I1,1F2,1W1,1B2,1F3,1I3,1W3\n";

/// One rank with three stages.
constexpr const char* kOneRank =
    "0F1,1F1,2F1,2B1,1B1,0F0,0B1,1F0,2F0,2B0,1B0,0B0,0F3,1F3,0F2,2F3,1F2,2F2,2B2,2B3,1B2,1B3,0B3,0B2\n";

/// Two ranks, three stages on the first and one on the second.
constexpr const char* kLopsided =
    "0F0,1F0,2F0,0F1,1F1,2F1,0F2,1F2,2F2,2B0,0F3,1F3,2F3,1B0,0B0,2B1,1B1,0B1,2B2,1B2,0B2,2B3,1B3,0B3\n"
    "3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3\n";

/// Three ranks, out of order.
constexpr const char* kThreeRanks =
    "0F2,0F1,0F0,0F3,0B2,0B1,0B3,0B0\n"
    "1F2,1F1,1F0,1B2,1F3,1B1,1B3,1B0\n"
    "2F2,2B2,2F1,2F0,2B1,2F3,2B3,2B0\n";

/// Five ranks, one forward and one backward in turn, out of order.
constexpr const char* kFiveRanks =
    "0F3,0F1,0F0,0F2,0B3,0B1,0B0,0B2\n"
    "1F3,1F1,1F0,1F2,1B3,1B1,1B0,1B2\n"
    "2F3,2F1,2F0,2B3,2F2,2B1,2B0,2B2\n"
    "3F3,3F1,3B3,3F0,3B1,3F2,3B0,3B2\n"
    "4F3,4B3,4F1,4B1,4F0,4B0,4F2,4B2\n";

/// Six ranks, split backwards, each kind of action in a different order.
constexpr const char* kSixRanks =
    "0F1,0F3,0F2,0F0,0I1,0I3,0I2,0I0,0W2,0W0,0W3,0W1\n"
    "1F1,1F3,1F2,1F0,1I1,1I3,1I2,1I0,1W2,1W0,1W3,1W1\n"
    "2F1,2F3,2F2,2F0,2I1,2I3,2I2,2I0,2W2,2W0,2W3,2W1\n"
    "3F1,3F3,3F2,3I1,3F0,3I3,3I2,3I0,3W2,3W0,3W3,3W1\n"
    "4F1,4F3,4I1,4F2,4I3,4F0,4I2,4I0,4W2,4W0,4W3,4W1\n"
    "5F1,5I1,5F3,5I3,5F2,5I2,5F0,5I0,5W2,5W0,5W3,5W1\n";

/// Seven ranks in a ring: the first has the eighth stage as well.
constexpr const char* kSevenRanks =
    "0F2,0F0,0F3,0F1,7F2,7B2,7F0,7B0,7F3,7B3,7F1,7B1,0B2,0B0,0B3,0B1\n"
    "1F2,1F0,1F3,1F1,1B2,1B0,1B3,1B1\n"
    "2F2,2F0,2F3,2F1,2B2,2B0,2B3,2B1\n"
    "3F2,3F0,3F3,3F1,3B2,3B0,3B3,3B1\n"
    "4F2,4F0,4F3,4F1,4B2,4B0,4B3,4B1\n"
    "5F2,5F0,5F3,5F1,5B2,5B0,5B3,5B1\n"
    "6F2,6F0,6F3,6F1,6B2,6B0,6B3,6B1\n";

}  // namespace

std::vector<reference::Case> orders() {
  return {
      {.id = "exact-own-out-of-order",
       .title = "micro-batches out of order on two ranks",
       .why = "results or gradients filed by the order of arrival instead of the number",
       .model = "exact-mlp",
       .loss = squares,
       .schedule_csv = kOutOfOrder},
      {.id = "exact-own-reversed",
       .title = "the last micro-batch first",
       .why = "a first micro-batch that is taken for number 0",
       .model = "exact-skip",
       .loss = squares,
       .schedule_csv = kReversed},
      {.id = "exact-own-multi-io",
       .title = "several inputs and outputs, micro-batches out of order",
       .why = "inputs taken from the front of a queue",
       .model = "exact-multi-io",
       .loss = squares,
       .schedule_csv = kOutOfOrder},
      {.id = "exact-own-v",
       .title = "four stages down and up, out of order",
       .why = "the turning point of a V, where a stage hands to its own rank",
       .model = "exact-mlp",
       .loss = squares,
       .schedule_csv = kV},
      {.id = "exact-own-v-shared",
       .title = "a module at both ends of a V, out of order",
       .why = "two copies on one rank that wait for each other",
       .model = "exact-shared-ends",
       .loss = squares,
       .schedule_csv = kV},
      {.id = "exact-own-v-encoder-decoder",
       .title = "encoder and decoder down and up a V",
       .why = "a skip between two stages of one rank",
       .model = "exact-encoder-decoder",
       .loss = sum,
       .schedule_csv = kV},
      {.id = "exact-own-halves",
       .title = "halves of backwards in orders of their own",
       .why = "weight halves run in the order of the input halves",
       .model = "exact-mlp",
       .loss = squares,
       .schedule_csv = kHalves},
      {.id = "exact-own-halves-uneven",
       .title = "halves in orders of their own, 10 rows over 4 micro-batches",
       .why = "a weight half given the gradients of another micro-batch",
       .model = "exact-wide",
       .rows = 10,
       .loss = squares,
       .schedule_csv = kHalves},
      {.id = "exact-own-mixed-halves",
       .title = "some backwards whole, some in halves",
       .why = "a stage that is taken for split because its first backward was",
       .model = "exact-mlp",
       .loss = squares,
       .schedule_csv = kMixed},
      {.id = "exact-own-one-rank",
       .title = "three stages on one rank",
       .why = "a border without a transfer",
       .model = "exact-late-input",
       .loss = squares,
       .schedule_csv = kOneRank},
      {.id = "exact-own-lopsided",
       .title = "three stages on one rank, one on the other",
       .why = "stages counted from ranks",
       .model = "exact-tied",
       .loss = squares,
       .schedule_csv = kLopsided},
      {.id = "exact-own-three-ranks",
       .title = "three ranks, out of order",
       .why = "ranks that are a power of two",
       .model = "exact-wide",
       .loss = squares,
       .schedule_csv = kThreeRanks},
      {.id = "exact-own-five-ranks",
       .title = "five ranks, out of order",
       .why = "stages given to ranks by division, which five does not come out of",
       .model = "exact-multi-io",
       .loss = squares,
       .schedule_csv = kFiveRanks},
      {.id = "exact-own-six-ranks",
       .title = "six ranks, halves in orders of their own",
       .why = "a weight half that waits for a rank with an even number",
       .model = "exact-skip",
       .rows = 10,
       .loss = squares,
       .schedule_csv = kSixRanks},
      {.id = "exact-own-seven-ranks",
       .title = "eight stages in a ring of seven ranks, one module in the first stage and the last",
       .why = "the last rank taken for the one that has the last stage",
       .model = "exact-shared-ends",
       .loss = squares,
       .schedule_csv = kSevenRanks},
      {.id = "own-five-ranks",
       .title = "five ranks, out of order, real values",
       .why = "stages cut at other places where their number does not divide that of the layers",
       .truth = reference::Truth::SameOrder,
       .model = "mlp",
       .loss = mean_square,
       .schedule_csv = kFiveRanks},
      {.id = "exact-own-recompute",
       .title = "micro-batches out of order, all but the last run again",
       .why = "the last of the order taken for the last by number",
       .model = "exact-mlp",
       .loss = squares,
       .schedule_csv = kOutOfOrder,
       .recompute = "except-last"},
      {.id = "own-out-of-order",
       .title = "micro-batches out of order, real values",
       .why = "gradients added by ascending number whatever the order of the backwards",
       .truth = reference::Truth::SameOrder,
       .model = "mlp",
       .loss = mean_square,
       .schedule_csv = kOutOfOrder},
      {.id = "own-halves",
       .title = "halves of backwards in orders of their own, real values",
       .why = "gradients added in the order of the input halves",
       .truth = reference::Truth::SameOrder,
       .model = "mlp",
       .loss = mean_square,
       .schedule_csv = kHalves},
      {.id = "own-dropout",
       .title = "dropout, micro-batches out of order",
       .why = "masks that depend on the order of actions",
       .truth = reference::Truth::SameOrder,
       .model = "mlp-dropout",
       .loss = mean_square,
       .schedule_csv = kV},
      {.id = "own-batch-norm",
       .title = "batch norm, micro-batches out of order",
       .why = "statistics updated by ascending number whatever the order of the forwards",
       .truth = reference::Truth::SameOrder,
       .model = "resnet-bn",
       .loss = cross_entropy,
       .schedule_csv = kOutOfOrder},
  };
}

}  // namespace plumbline::conformance::cases
