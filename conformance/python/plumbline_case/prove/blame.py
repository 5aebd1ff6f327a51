"""Where two terms part: from a result that differs down to the first operator that differs although its operands agree. As
conformance/proof/blame.cc does it."""

from collections import Counter

from ..place import Place


class Blame:
    """`terms` are those of both runs; `expected` and `found` are their logs."""

    def __init__(self, terms, expected, found):
        self._terms, self._expected, self._found = terms, expected, found

    def between(self, expected, found):
        where, use = Place(), ""
        while True:
            right, wrong = self._terms[expected], self._terms[found]
            here = self._found.first.get(found, Place())
            where = here if here.stage is not None else where
            prefix = f"{where}: " if str(where) else ""
            if is_sum(right) or is_sum(wrong):
                wanted, got = self._addends(expected), self._addends(found)
                missing, more = surplus(wanted, got), surplus(got, wanted)
                if not missing and not more:
                    return f"{prefix}the same {len(got)} addends are added in another order"
                if not missing:
                    return f"{prefix}added too often: {self.describe(more[0])}"
                if not more:
                    return f"{prefix}left out of a sum: {self.describe(missing[0])}"
                if is_sum(right) and is_sum(wrong):
                    expected, found = missing[0], more[0]
                    continue
            if right.op != wrong.op or len(right.operands) != len(wrong.operands) or not right.operands:
                return prefix + self._contrast(expected, found) + use
            number = next((i for i, (a, b) in enumerate(zip(right.operands, wrong.operands)) if a != b), None)
            if number is None:
                if right.op == "elements":
                    return prefix + self._contrast(expected, found) + use
                return f"{prefix}{right.op} was given other arguments: expected {right.attributes}, found {wrong.attributes}"
            if right.op != "elements":
                use = f", as operand {number} of {right.op}"
            expected, found = right.operands[number], wrong.operands[number]

    def describe(self, root):
        term = self._terms[root]
        if term.op == "constant":
            return f"bytes that no operator made ({term.attributes.partition(' ')[0]})"
        if term.op in ("fill", "number"):
            return f"the number {term.attributes.partition(' ')[0]}"
        if not term.operands:
            return term.op if term.op.startswith("aten::") else f"{term.op} {' '.join(term.attributes.split(' ')[:-2])}"
        if term.op == "elements":
            rows, of = term.attributes.partition(" from ")[2].rpartition(" ")[0], self.describe(term.operands[0])
            return f"elements {rows} of {of}" if rows else of
        microbatch = self._expected.first.get(root, Place()).microbatch
        if microbatch is not None:
            return f"{term.op} of micro-batch {microbatch}"
        place = self._found.first.get(root, Place())
        return f"{term.op} of {place}" if place.stage is not None else term.op

    def _contrast(self, expected, found):
        right, wrong = self.describe(expected), self.describe(found)
        return f"expected {right}, found {wrong}" if right != wrong else f"{right} has other content"

    def _addends(self, root):
        """Of nested additions, from left to right."""
        found, open_ = [], [root]
        while open_:
            one = open_.pop()
            if is_sum(self._terms[one]):
                open_ += reversed(self._terms[one].operands)
            else:
                found.append(one)
        return found


def is_sum(term):
    return term.op == "aten::add.Tensor" and len(term.operands) == 2


def surplus(all_of, others):
    """What is in `all_of` more often than in `others`."""
    count, rest = Counter(others), []
    for one in all_of:
        count[one] -= 1
        if count[one] < 0:
            rest.append(one)
    return rest
