// For the time between fork() and exec(): these functions call only what a signal handler may call.
#pragma once

#include <sys/types.h>

#include <array>

namespace plumbline::conformance {

/// fork() without the handlers that libraries have for it: they are not for a process that only calls the kernel.
pid_t fork_alone();

/// All handlers back to the default, no signal blocked.
void reset_signals();
/// Blocks every signal, SIGPIPE too.
void block_signals();

/// Closes every descriptor but these: a copy would keep a reader from its end of file. Negative ones are none.
void close_others(std::array<int, 4> kept);

/// read() that no signal interrupts.
ssize_t read_fully(int descriptor, void* to, size_t size);

void nap(int milliseconds);

}  // namespace plumbline::conformance
