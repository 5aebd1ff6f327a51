"""A second opinion on plumbline's proofs: Z3 says whether two exported graphs of terms are equal over the real numbers.

It shares no code with the provers (conformance/proof, plumbline_case/prove), and does no algebra of its own: graphs
become elements (graph.py, views.py, operators.py), elements that may be equal are found by their values at random
numbers (values.py), and Z3 decides (solver.py, sweep.py).
"""
