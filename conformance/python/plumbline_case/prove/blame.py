"""Where two terms part: from a result that differs down to the first operator that differs although its operands agree. As
conformance/proof/blame.cc does it."""

import math
from collections import Counter

from ..place import Place
from .sums import changed_addends, factor_between


class Blame:
    """`terms` are those of both runs, with their normal forms; `expected` and `found` are the logs."""

    def __init__(self, terms, forms, expected, found):
        self._terms, self._forms, self._expected, self._found = terms, forms, expected, found

    def between(self, expected, found):
        where, use = Place(), ""
        while True:
            right, wrong = self._terms[expected], self._terms[found]
            here = self._found.first.get(found, Place())
            where = here if here.stage is not None else where
            if is_sum(right) or is_sum(wrong):
                said, pair = self._of_sums(expected, found)
                if said:
                    return located(where, said)
                if pair:
                    expected, found = pair
                    continue
            if right.op != wrong.op or len(right.operands) != len(wrong.operands) or not right.operands:
                return self._contrast(where, expected, found, use)
            differ = [i for i, (a, b) in enumerate(zip(right.operands, wrong.operands)) if a != b]
            if not differ:
                if right.op == "elements":
                    return self._contrast(where, expected, found, use)
                said = f"{right.op} was given other arguments: expected {right.attributes}, found {wrong.attributes}"
                return located(where, said)
            same_sum = lambda i: factor_between(self._forms, right.operands[i], wrong.operands[i]) == 1
            number = next((i for i in differ if not same_sum(i)), differ[0])
            if right.op != "elements":
                use = f", as operand {number} of {right.op}"
            expected, found = right.operands[number], wrong.operands[number]

    def _of_sums(self, expected, found):
        """What to say of two terms of which one is a sum; or, if that is nothing, the two addends to go on with."""
        wanted, got = self._addends(expected), self._addends(found)
        missing, more = (sorted(part, key=self._microbatch) for part in (surplus(wanted, got), surplus(got, wanted)))
        if not missing and not more:
            return f"the same {len(got)} addends are added in another order", None
        if factor_between(self._forms, expected, found) == 1:
            partners = [one for one in more if missing and factor_between(self._forms, missing[0], one) == 1]
            if partners and (missing[0], partners[0]) != (expected, found):
                return "", (missing[0], partners[0])
            said = self._expected_and_found(expected, found)
            return f"the same sum, but added or multiplied in another order: {said}", None
        missing, more = self._without_same_sums(missing, more)
        if not missing:
            return f"added too often: {self.describe(more[0])}", None
        if not more:
            return f"left out of a sum: {self.describe(missing[0])}", None
        both = is_sum(self._terms[expected]) and is_sum(self._terms[found])
        return "", (missing[0], more[0]) if both else None

    def _microbatch(self, root):
        """That of the unsplit run, or else of the other one; terms without any are the last ones."""
        found = [self._nearest(log, root).microbatch for log in (self._expected, self._found)]
        return next((m for m in found if m is not None), math.inf)

    def _without_same_sums(self, missing, more):
        """Without those of `missing` that are the same sum as one of `more`, and that one."""
        missing, more = list(missing), list(more)
        for one in list(missing):
            partner = next((other for other in more if factor_between(self._forms, one, other) == 1), None)
            if partner is not None:
                missing.remove(one)
                more.remove(partner)
        return missing, more

    def place_of(self, root):
        """Of a term of the found run, or else of the nearest one below it."""
        return self._nearest(self._found, root)

    def _nearest(self, log, root):
        open_, seen = [root], set()
        for one in open_:
            place = log.first.get(one, Place())
            if place.action:
                return place
            operands = self._terms[one].operands if one in self._terms else ()  # not so of a body of a normal form
            open_ += [operand for operand in operands if operand not in seen]
            seen.update(operands)
        return Place()

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

    def _contrast(self, where, expected, found, use):
        changed = sorted(changed_addends(self._forms, expected, found), key=lambda one: self._microbatch(one[0]))
        if not changed:
            return located(where, self._expected_and_found(expected, found) + use)
        addend, right, wrong = changed[0]
        alike = sum((a, b) == (right, wrong) for _, a, b in changed)
        what = self.describe(addend) if addend in self._terms else "one"
        count, many = len(self._forms.addends(expected)), f" and {alike - 1} more" if alike > 1 else ""
        said = f"{what}{many}: {times(right)} expected, {times(wrong)} found"
        said = f"in a sum of {count} addends, {said}" if count > 1 else said
        return located(where if where.stage is not None else self.place_of(addend), said + use)

    def _expected_and_found(self, expected, found):
        right, wrong = self.describe(expected), self.describe(found)
        if right != wrong:
            return f"expected {right}, found {wrong}"
        counts = len(self._terms[expected].operands), len(self._terms[found].operands)
        if len(set(counts)) > 1:
            return f"{right} has {counts[1]} operands instead of {counts[0]}"
        return f"{right} has other content"

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


def located(where, said):
    return f"{where}: {said}" if str(where) else said


def times(coefficient):
    return "none" if coefficient == 0 else f"{coefficient} times" if coefficient.denominator == 1 else f"{coefficient} of it"


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
