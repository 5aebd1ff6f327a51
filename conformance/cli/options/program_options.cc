#include "conformance/cli/options/program_options.h"

#include "runtime/error.h"

namespace plumbline::cli {

void add_split_options(CLI::App& command, program::ProgramSplit& split) {
  command
      .add_option(
          "--split", split.points,
          "Modules at which a stage begins or ends: layers.4, layers.4:begin or layers.3:end; several with commas")
      ->delimiter(',')
      ->type_name("MODULE[:begin|:end],...");
  command.add_option("--stages", split.stages, "The number of stages; --policy places the borders")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--policy", split.policy,
                  "With --stages: equal flops (the default), measured-flops, parameter bytes, or forward+backward time "
                  "(the optimal partition). Without --stages: every:CLASS:N, every N-th call of modules of a class")
      ->type_name("flops|measured-flops|bytes|time|every:CLASS:N");
  command
      .add_option(
          "--shared", split.shared,
          "A parameter that several stages use is sent along as a value (transmit), or copied and its gradients "
          "summed (replicate); for one parameter: NAME=replicate")
      ->delimiter(',')
      ->type_name("transmit|replicate|NAME=...,...")
      ->default_str("transmit");
  const std::map<std::string, split::Route> routes = {
      {"chain", split::Route::Chain}, {"direct", split::Route::Direct}, {"neighbours", split::Route::Neighbours}};
  command
      .add_option(
          "--route", split.route,
          "How a value reaches the stages that use it: from one user to the next (bits as in the uncut program), "
          "directly from the stage that computes it, or from neighbour to neighbour")
      ->transform(CLI::CheckedTransformer(routes).description(""))
      ->type_name("chain|direct|neighbours")
      ->default_str("chain");
}

void add_step_options(CLI::App& group, program::ProgramOptions& program, const std::string& what) {
  group.add_option("--program", program.program, what)->type_name("M.pt2");
  add_split_options(group, program.split);
  group
      .add_option("--inputs", program.inputs,
                  "The whole batch under the names of the program's inputs, and the loss's target; default: the "
                  "archive's sample inputs, varied by --seed for each micro-batch")
      ->type_name("F.safetensors");
  group
      .add_option("--loss", program.loss,
                  "Default: the output 'loss', or one that is a scalar, or the sum of output 0; TARGET is the name of "
                  "a tensor of the inputs")
      ->type_name("output:K|sum|mean|mse:TARGET|cross-entropy:TARGET");
}

void take_step_options(const conformance::RunOptions& run, program::ProgramOptions& program) {
  if (run.selection.schedules) program.schedule = *run.selection.schedules;
  program.microbatches = run.microbatches;
  if (run.selection.ranks.size() > 1)
    throw InputError("--ranks: " + conformance::numbers_text(run.selection.ranks) +
                     " given; a program runs on one number of ranks");
  program.ranks = run.selection.ranks.empty() ? 0 : run.selection.ranks.front();
  program.recompute.policy = engine::parse_recompute(run.recompute);
  program.remat = run.remat;
  engine::check_remat(program.remat, program.recompute.policy != engine::Recompute::Never);
  program.seed = run.seed;
}

}  // namespace plumbline::cli
