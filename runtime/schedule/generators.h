// Schedules by name: the order in which each rank does its forwards and backwards.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline {

/// The names make_schedule knows, in the order in which they are shown.
std::vector<std::string> schedule_names();

/// The compute schedule `name` for one stage on each of `ranks` >= 1 ranks and `microbatches` >= 1 (also fewer than
/// ranks); below, P and M.
///
/// gpipe   All forwards, then all backwards, both by ascending micro-batch. (Huang et al., arXiv 1811.06965; torchgpipe
///         does the backwards in descending order.) A parameter's gradient is summed in the order of its backwards, and
///         floating-point sums depend on it, so this order is part of what `gpipe` means: it is also PyTorch's, and
///         the order in which 1f1b accumulates, so that the two give the same bits.
/// 1f1b    PipeDream-flush (Narayanan et al., arXiv 2006.09503), also called DAPPLE: rank r does min(M, P-1-r)
///         forwards, then pairs of a forward and a backward, then the remaining backwards.
/// zb-h1   The first handcrafted zero-bubble schedule (Qi et al., arXiv 2401.10241, section 2.2): every backward comes
///         in halves. Rank r does min(M, P-r) forwards; then, for each micro-batch, its I, a W once more than r of them
///         are due, and the next forward; at last the W that are left. Every rank holds at most min(M, P) activations,
///         what rank 0 holds under 1f1b. It is the order of PyTorch's ScheduleInterleavedZeroBubble with one stage on
///         each rank, action by action.
/// zb-h2   The second (same paper and section): as zb-h1 with min(M, 2(P-r)-1) forwards first and W that lag by 2r.
///         From 2P-1 micro-batches on no rank waits between its first and its last action where F, I and W take equal
///         time; in return every rank holds up to min(M, 2P-1) activations.
///
/// In both zero-bubble schedules each stage does its W, as its I, by ascending micro-batch, so that gradients have the
/// same bits as under gpipe and 1f1b.
///
/// Throws InputError, one line, for an unknown name, for numbers below 1 and for more than 2^27 ranks x micro-batches.
Schedule make_schedule(const std::string& name, int ranks, int microbatches);

/// The fraction of all ranks' time in which they stand still, from the first action of the step to the last, for equal
/// stages and free transfers. It is idle / (M(tf+tb) + idle), where a rank's idle time is
/// gpipe, 1f1b   (P-1)(tf+tb), whatever tf and tb are (arXiv 1811.06965, section 2.3; arXiv 2104.04473, section 2.2,
///               which states it relative to the ideal time M(tf+tb)),
/// zb-h1, zb-h2  (P-1) and, where micro-batches are fewer than the schedule is made for, max(0, P-M) and
///               max(0, (2P-1-M)/2) rounded down, in units of F = I = W: these need a ratio, and tf : tb is taken as
///               1 : 2. The paper counts the time of a rank from its own first action, which is (P-1) less for zb-h2,
///               hence its name; Timeline (simulate.h) has both.
/// Throws InputError as make_schedule does.
double ideal_bubble(const std::string& name, int ranks, int microbatches);

}  // namespace plumbline
