#include "conformance/program/step.h"

#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/text/counted.h"

namespace plumbline::program {
namespace {

/// The one schedule that the user named.
conformance::ChosenSchedule one_schedule(const std::string& name) {
  const std::vector<conformance::ChosenSchedule> chosen = conformance::choose_schedules(name);
  if (chosen.size() > 1)
    throw InputError("--schedule: a program runs under one schedule; " + name + " matches " +
                     std::to_string(chosen.size()));
  return chosen.front();
}

/// Numbers that the user left open and the schedule determines.
struct Defaults {
  int stages = 1, microbatches = 0;
};

Defaults defaults_of(const conformance::ChosenSchedule& chosen, int ranks) {
  if (!chosen.csv.empty()) {
    const schedule::Schedule schedule = schedule::parse_csv(chosen.csv, chosen.name);
    return {schedule.stages, schedule.microbatches};
  }
  return {ranks > 0 ? ranks * schedule::schedule_kind(chosen.name).stages_per_rank : 1, 0};
}

}  // namespace

ProgramStep make_step(ProgramOptions options, int ranks) {
  if (ranks > 0 && options.ranks > 0 && options.ranks != ranks)
    throw InputError("--ranks: " + std::to_string(options.ranks) + " given, but mpirun started " +
                     std::to_string(ranks));
  ProgramStep step;
  step.schedule = one_schedule(options.schedule);
  const Defaults defaults = defaults_of(step.schedule, ranks);
  if (options.microbatches == 0) options.microbatches = defaults.microbatches;
  step.prepared = prepare_program(options.program, options.split, options.loss, defaults.stages);
  const int stages = step.prepared.pipe.num_stages();
  step.batch = program_batch(step.prepared.program, step.prepared.loss, options, stages);
  const schedule::Schedule schedule = [&] {
    try {
      return conformance::schedule_over_stages(step.schedule, stages, ranks, step.batch.microbatches);
    } catch (const InputError& error) {
      throw InputError(options.program.string() + " is cut into " + counted(stages, "stage") +
                       (ranks > 0 ? ", but there are " + std::to_string(ranks) + " ranks: " : ": ") + error.what());
    }
  }();
  if (step.prepared.has_backward && !has_backward(schedule))
    throw InputError("schedule " + schedule.name + ": it has no backward, but the program has parameters to train");
  step.ranks = static_cast<int>(schedule.ranks.size());
  engine::check_recompute(options.recompute, step.prepared.pipe);
  step.recompute = options.recompute;
  step.remat = options.remat;
  step.seed = options.seed;
  step.timeout_seconds = options.timeout_seconds;
  return step;
}

}  // namespace plumbline::program
