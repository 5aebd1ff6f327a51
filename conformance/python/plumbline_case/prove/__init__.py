"""Proofs about an engine under test: every result of its run has the term that the unsplit model gives it.

docs/proof.md says what terms are and what a proof means; conformance/proof does the same for plumbline's runtime, and its
terms are hashed in the same way. Here a dispatch mode of torch watches the ranks of an adapter (recorder.py), terms cross
between ranks beside the messages (messages.py), and the unsplit model gives the expected ones (unsplit.py). The verb
`prove` of an adapter on torch.distributed starts it all (command.py).
"""
