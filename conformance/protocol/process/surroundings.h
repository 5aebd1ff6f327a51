// What surrounds this process when it begins: open streams, its stack, its working folder.
#pragma once

namespace plumbline::conformance {

/// Opens /dev/null where standard input, output or error is closed: else a pipe to a child would get its number. A
/// write to the stream still fails.
void open_closed_streams();

/// Throws InputError where LibTorch would fail without a word of ours: the stack is too small, or the working folder is
/// gone.
void expect_surroundings();

}  // namespace plumbline::conformance
