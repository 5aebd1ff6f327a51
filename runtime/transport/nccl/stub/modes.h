// The modes of the stub, a library with the functions of NCCL and CUDA that needs no GPU: each mode makes a legal worst
// case of NCCL happen every time.
//
//   rendezvous  A send blocks its stream until the receive is at the head of its stream: no message is ever buffered.
//   eager       A small message is buffered: its send ends before the receive begins. The default.
//   late        A send reads its memory only after its receive has begun and its own thread has asked for an event; a
//               receive writes only when its process asks for an event recorded behind it. Without such a question both
//               happen at the end. Implies rendezvous.
//   poison      A receive's memory holds 0xff bytes from the moment of ncclRecv until the operation ends.
//   shuffle     Each operation begins after a random time, so that those of different communicators change their order.
//   apart       Ordinary host memory cannot be used, as with a GPU: only memory of cudaHostAlloc.
#pragma once

#include <string>

namespace plumbline::transport::nccl::stub {

struct Modes {
  bool rendezvous = false, eager = false, late = false, poison = false, shuffle = false, apart = false;
  std::string text = "eager";  ///< the modes as words, with commas between them

  bool waits_for_receive() const { return rendezvous || late; }
};

/// The modes of this process: until set_modes(), those of the environment variable PLUMBLINE_NCCL_STUB ("late,poison").
const Modes& modes();
/// Ignores unknown words. An empty text is the default.
void set_modes(const std::string& text);

}  // namespace plumbline::transport::nccl::stub
