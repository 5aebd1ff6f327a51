#include "conformance/cli/schedule/lowering_options.h"

#include "conformance/cli/schedule/schedule_options.h"
#include "runtime/error.h"
#include "runtime/schedule/lowering/lower.h"

namespace plumbline::cli {

schedule::Schedule LoweringChoice::lower(const schedule::Schedule& compute,
                                         const std::vector<schedule::StageEdge>& edges) const {
  if (by == "engine") {
    if (pytorch_knob_given) {
      throw InputError(
          "--lowering engine does not go with --max-active-stages, --unshard-lookahead, --defer-reduce-wait, "
          "--defer-receives, --send-budget, the options of PyTorch's lowering");
    }
    return plumbline::schedule::lower(compute, edges);
  }
  if (schedule::has_offload(compute)) {
    throw InputError("--lowering pytorch: PyTorch has no OFFLOAD and RELOAD; give --lowering engine");
  }
  return schedule::lower_as_pytorch(without_communication(compute), edges, pytorch);
}

void add_lowering_options(CLI::App& command, LoweringChoice& choice) {
  command
      .add_option("--lowering", choice.by,
                  "How transfers are added, for --format comms and --check: pytorch, action for action like PyTorch "
                  "2.15; engine, like plumbline's runtime")
      ->check(CLI::IsMember({"pytorch", "engine"}).description(""))
      ->type_name("pytorch|engine")
      ->capture_default_str();
  const auto knob = [&](CLI::Option* option) {
    option->each([&choice](const std::string&) { choice.pytorch_knob_given = true; })->group("PyTorch's lowering");
    return option;
  };
  knob(command.add_option("--max-active-stages", choice.pytorch.max_active_stages,
                          "Stages whose parameters a rank may have gathered at once"))
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  knob(command.add_option("--unshard-lookahead", choice.pytorch.unshard_lookahead,
                          "How many of the next stages are gathered ahead: full, auto, a number, or one for each rank"))
      ->capture_default_str();
  knob(command.add_flag("--defer-reduce-wait", choice.pytorch.defer_reduce_grad_wait,
                        "Wait for the sum of a stage's gradients as late as possible"));
  knob(command.add_flag("--defer-receives", choice.pytorch.defer_pp_recv,
                        "Post a receive just before it is needed, not as soon as the other rank sends"));
  knob(command.add_option("--send-budget", choice.pytorch.max_outstanding_sends,
                          "Maximum number of sends of a rank that are not waited for yet"))
      ->check(CLI::Range(1, 1 << 20));
}

}  // namespace plumbline::cli
