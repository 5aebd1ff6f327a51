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
///
/// Throws InputError, one line, for an unknown name, for numbers below 1 and for more than 2^27 ranks x micro-batches.
Schedule make_schedule(const std::string& name, int ranks, int microbatches);

/// The fraction of all ranks' time in which they stand still, for equal stages and free transfers: (P-1)/(M+P-1) for
/// both gpipe (arXiv 1811.06965, section 2.3) and 1f1b (arXiv 2104.04473, section 2.2, which gives the same idle time
/// (P-1)(tf+tb) relative to the ideal time M(tf+tb)). Throws InputError as make_schedule does.
double ideal_bubble(const std::string& name, int ranks, int microbatches);

}  // namespace plumbline
