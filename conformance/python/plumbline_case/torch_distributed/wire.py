"""Messages between ranks as bad as torch.distributed allows them to be, for finding engines that work by luck: the words of
*run* in INTERPRETING.md.

slow      A message leaves a random time after its isend, up to 3 ms, in the order of the isends; up to 5 ms later still while
          no wait() for it has come: an engine may wait for the answer first, or never. Its buffer is read then. A buffer
          that has other memory by then was freed: NaN is sent (0xA5 bytes, if the elements have no NaN).
poison    The buffer of an irecv is NaN until its wait() returns, or until is_completed() first says so.
shuffle   Messages to different ranks leave in another order than that of their isends.

What a user may expect, and so what these leave untouched:

* Messages from one rank to another arrive in the order of their isends. Nothing orders messages of other pairs, not even
  if one is sent because of another.
* From isend until its wait() returns, the transfer may read the buffer at any moment. The engine must neither change nor
  free it. Afterwards the buffer is the engine's, with its contents: it may be an activation that the backward needs, so
  nothing is overwritten there.
* From irecv until its wait() returns, the contents of the buffer are undefined.
* A message that is never waited for leaves all the same.
"""

import contextlib
import random
import threading
import time
import zlib

from .messages import carried_by

WORDS = ("slow", "poison", "shuffle")
DELAY, LATE, SHUFFLE = 0.003, 0.005, 0.002  # seconds, together no more than INTERPRETING.md says


def garbage(tensor):
    """Fills a tensor with what no engine computes."""
    import torch

    if tensor.is_floating_point() or tensor.is_complex():
        tensor.fill_(float("nan"))
    elif tensor.numel():
        bytes_of_one = torch.full((tensor.element_size(),), 0xA5, dtype=torch.uint8, device=tensor.device)
        tensor.copy_(bytes_of_one.view(tensor.dtype)[0])


class Sending:
    """An isend that has not left yet, and its Work."""

    def __init__(self, wire, tensor, send, soonest, latest):
        self.soonest, self.due = soonest, latest
        self._wire, self._tensor, self._send = wire, tensor, send
        self._late = soonest != latest
        self._memory = tensor.data_ptr()
        self._payload = tensor.detach() if self._late else tensor.detach().clone()
        self._left, self._work, self.error = threading.Event(), None, None

    def leave(self):
        """In the thread of the wire."""
        try:
            if self._late and self._memory != self._tensor.data_ptr():
                self._payload = self._payload.clone()
                garbage(self._payload)
            self._work = self._send(self._payload)
        except Exception as error:
            self.error = error
        self._left.set()

    def wait(self, *timeout):
        self._hurry()
        return self._work.wait(*timeout)

    def is_completed(self):
        return self._left.is_set() and (self.error is not None or self._work.is_completed())

    def _hurry(self):
        self._wire.hurry(self)
        self._left.wait()
        if self.error is not None:
            raise self.error

    def __getattr__(self, name):
        self._hurry()
        return getattr(self._work, name)


class Receiving:
    """An irecv into memory of its own; the engine's buffer is filled when the engine may look."""

    def __init__(self, tensor, receive):
        self._tensor, self._filled = tensor, False
        # .data: autograd does not see gloo's writes either.
        garbage(tensor.data)
        self._own = tensor.detach().clone()
        self._work = receive(self._own)

    def _fill(self):
        if not self._filled:
            self._tensor.data.copy_(self._own)
            self._filled = True

    def wait(self, *timeout):
        done = self._work.wait(*timeout)
        self._fill()
        return done

    def is_completed(self):
        if done := self._work.is_completed():
            self._fill()
        return done

    def __getattr__(self, name):
        return getattr(self._work, name)


class Wire:
    """A carrier of the messages of one process (messages.py), which leave from a thread that begins with the first one."""

    def __init__(self, words, seed):
        self.words, self._random = words, random.Random(seed)
        self._change = threading.Condition()
        self._queues = {}  # destination: its Sendings in the order of the isends
        self._last = 0.0
        self._staying = 0  # messages that have not left
        self._thread, self._closing, self._errors = None, False, []

    def isend(self, tensor, destination, channel, send):
        if not tensor.is_contiguous():  # gloo refuses that, which a copy would hide
            return send(tensor)
        with self._change:
            soonest = time.monotonic()
            soonest += self._random.uniform(0, DELAY) if "slow" in self.words else 0
            soonest += self._random.uniform(0, SHUFFLE) if "shuffle" in self.words else 0
            if "shuffle" not in self.words:
                self._last = soonest = max(soonest, self._last)
            sending = Sending(self, tensor, send, soonest, soonest + (LATE if "slow" in self.words else 0))
            self._queues.setdefault(destination, []).append(sending)
            self._staying += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
            self._change.notify_all()
        return sending

    def irecv(self, tensor, source, channel, receive):
        worse = "poison" in self.words and tensor.is_contiguous()
        return Receiving(tensor, receive) if worse else receive(tensor)

    def hurry(self, sending):
        """It is waited for: neither it nor those before it to the same rank are late any more."""
        with self._change:
            for queue in self._queues.values():
                if sending in queue:
                    for one in queue[: queue.index(sending) + 1]:
                        one.due = one.soonest
            self._change.notify_all()

    def flush(self):
        """Returns when every message so far has left."""
        with self._change:
            self._change.wait_for(lambda: not self._staying)

    def close(self):
        """Returns when every message has left."""
        with self._change:
            self._closing = True
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self):
        while sending := self._next():
            sending.leave()
            if sending.error is not None:
                self._errors.append(sending.error)
            with self._change:
                self._staying -= 1
                self._change.notify_all()

    def _next(self):
        """The next message when its time has come; None when all have left and no more will come."""
        with self._change:
            while True:
                heads = [(queue[0].due, destination) for destination, queue in self._queues.items() if queue]
                if not heads and self._closing:
                    return None
                due, destination = min(heads, default=(None, None))
                seconds = None if due is None else due - time.monotonic()
                if seconds is not None and (seconds <= 0 or self._closing):
                    return self._queues[destination].pop(0)
                self._change.wait(seconds)


def own_seed(seed, rank):
    return zlib.crc32(f"{seed} {rank}".encode())


@contextlib.contextmanager
def bad_wire(words, seed, rank):
    """torch.distributed with such a wire on this rank, inside a process group; nothing changes without words."""
    if not words:
        yield
        return
    import torch.distributed as dist

    wire = Wire(set(words), own_seed(seed, rank))
    with carried_by(wire):
        yield
    wire.close()
    dist.barrier()  # a rank that ended earlier would break messages to it
