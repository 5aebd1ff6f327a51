// The subcommands of `plumbline-bench`: each function adds one to the parser. If the user names it, parsing sets
// `chosen`, to which the parser keeps a reference.
#pragma once

#include "conformance/cli/entry.h"

namespace plumbline::bench {

void add_micro(CLI::App& app, cli::Command& chosen);
void add_throughput(CLI::App& app, cli::Command& chosen);
void add_gaps(CLI::App& app, cli::Command& chosen);
void add_peers(CLI::App& app, cli::Command& chosen);
void add_peers_step(CLI::App& peers, cli::Command& chosen);       ///< adds `step` to the subcommand `peers`
void add_peers_partition(CLI::App& peers, cli::Command& chosen);  ///< adds `partition` to it
void add_peers_cut(CLI::App& peers, cli::Command& chosen);        ///< adds `cut` to the subcommand `peers`
void add_proof(CLI::App& app, cli::Command& chosen);
void add_instructions(CLI::App& app, cli::Command& chosen);
void add_compare(CLI::App& app, cli::Command& chosen);
void add_history(CLI::App& app, cli::Command& chosen);
void add_export(CLI::App& app, cli::Command& chosen);
void add_alarm(CLI::App& app, cli::Command& chosen);

}  // namespace plumbline::bench
