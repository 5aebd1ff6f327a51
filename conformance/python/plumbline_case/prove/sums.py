"""Normal forms: what a term is over the real numbers, where the order of a sum does not count and factors commute with
linear operators. As conformance/proof/sums does it. Equal normal forms mean equal values for all inputs; the opposite does
not hold: a normal form knows linear operators, sums and factors, and no other law of algebra."""

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from .terms import Terms, picked, term_of, type_text, whole

JOINTLY = "jointly"  # a factor of all operands is one of the result
LINEAR = dict.fromkeys(
    "aten::div.Tensor aten::sum aten::sum.dim_IntList aten::mean aten::mean.dim aten::avg_pool2d aten::embedding"
    " aten::threshold_backward aten::gelu_backward aten::tanh_backward aten::_softmax_backward_data"
    " aten::_log_softmax_backward_data aten::native_layer_norm_backward aten::native_batch_norm_backward"
    " aten::_scaled_dot_product_flash_attention_for_cpu_backward aten::mse_loss_backward aten::nll_loss_backward"
    " aten::embedding_dense_backward aten::convolution_backward aten::avg_pool2d_backward aten::slice_backward"
    " aten::select_backward aten::pixel_shuffle aten::pixel_unshuffle elements broadcast".split(),
    (0,),
)
LINEAR |= dict.fromkeys(("aten::mm", "aten::bmm", "aten::mul.Tensor"), (0, 1))
LINEAR |= dict.fromkeys(("aten::cat", "aten::stack"), JOINTLY)

LARGEST_DENOMINATOR = 1 << 20


def rational_of(text):
    """The fraction with the smallest denominator that rounds to the number; None for another text."""
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    near = Fraction(number).limit_denominator(LARGEST_DENOMINATOR)
    return near if float(near) == number else Fraction(number)


class Form(NamedTuple):
    """A factor times a body. A body is an operator applied to bodies, or a sum: the multiset of its addends, each with a
    coefficient, scaled so that one addend has the coefficient 1. A factor of 0 has a body of its own."""

    factor: Fraction
    body: str


def attribute(term, name):
    return next((part.partition("=")[2] for part in term.attributes.split() if part.startswith(name + "=")), "")


def type_of(term):
    """ "f32[2,3]": a sum's addends are broadcast to these sizes."""
    return term.attributes.partition(" ")[0]


def has_type(term, kind):
    """An operator's attributes begin with its type, a leaf's have it after its name."""
    return kind in term.attributes.partition("=")[0].split()


def sign_of(term):
    """The sign of the second operand of an addition or a subtraction; 0 for another term."""
    if len(term.operands) != 2 or rational_of(attribute(term, "alpha")) is None or type_of(term).startswith("bool"):
        return 0
    return {"aten::add.Tensor": 1, "aten::sub.Tensor": -1}.get(term.op, 0)


class NormalForms:
    """The normal forms of terms, each computed once."""

    def __init__(self, terms):
        self._terms, self._bodies = terms, Terms()
        self._known, self._sums = {}, {}  # by body of a sum: {body: coefficient}
        self._made_of = {}  # by body: the first term that had it

    def of(self, root):
        open_ = [(root, False)]
        while open_:
            term, parts_are_known = open_.pop()
            if term in self._known:
                continue
            if parts_are_known:
                self._known[term] = self._compute(term)
                self._made_of.setdefault(self._known[term].body, term)
            else:
                open_.append((term, True))
                open_ += [(part, False) for part in self._parts(term)]
        return self._known[root]

    def addends(self, root):
        """{addend, a term with that normal form: its coefficient} of a sum; of another term itself."""
        factor, body = self.of(root)
        return {self._made_of.get(one, one): factor * c for one, c in self._sums.get(body, {body: 1}).items()}

    def _addends(self, root):
        """[(coefficient, identity)]: nested sums of one type are one sum."""
        kind, found, open_ = type_of(self._terms[root]), [], [(Fraction(1), root)]
        while open_:
            coefficient, one = open_.pop()
            term = self._terms[one]
            sign = sign_of(term)
            if not sign or type_of(term) != kind:
                found.append((coefficient, one))
                continue
            alpha = rational_of(attribute(term, "alpha"))
            open_ += [(coefficient, term.operands[0]), (coefficient * sign * alpha, term.operands[1])]
        return found

    def _parts(self, root):
        term = self._terms[root]
        return [part for _, part in self._addends(root)] if sign_of(term) else term.operands

    def _compute(self, root):
        term = self._terms[root]
        if sign_of(term):
            return self._sum(root)
        if term.op in ("fill", "number"):
            return self._fill(term)
        if term.op == "elements":
            return self._elements(root)
        if (factor := self._scale(term)) is not None:
            form = self._known[term.operands[0]]
            return Form(factor * form.factor, form.body) if factor else self._zero()
        return self._applied(term)

    def _zero(self):
        return Form(Fraction(0), self._bodies.add("zero"))

    def _fill(self, term):
        text, _, rest = term.attributes.partition(" ")
        number = rational_of(text)
        if number is None:
            return Form(Fraction(1), self._bodies.add(*term))
        return Form(number, self._bodies.add(term.op, f"1 {rest}".strip())) if number else self._zero()

    def _scale(self, term):
        """The number by which the term multiplies its first operand, if it does no more than that."""
        if term.op == "aten::neg":
            return Fraction(-1)
        over = term.op.startswith("aten::div.")
        if not over and not term.op.startswith("aten::mul.") or attribute(term, "rounding_mode"):
            return None
        text = attribute(term, "other")
        if text == "%":
            other = self._terms[term.operands[-1]]
            text = other.attributes if other.op == "number" else self._fill_in(term, other)
        factor = rational_of(text)
        return None if factor is None or over and not factor else 1 / factor if over else factor

    def _fill_in(self, term, other):
        """The number of a tensor that is the same everywhere and does not widen what it multiplies; else ""."""
        is_factor = other.op == "fill" and has_type(self._terms[term.operands[0]], type_of(term))
        return other.attributes.partition(" ")[0] if is_factor else ""

    def _sum(self, root):
        kind, coefficients = type_of(self._terms[root]), defaultdict(Fraction)
        for coefficient, addend in self._addends(root):
            form = self._known[addend]
            for body, part in self._sums.get(form.body, {form.body: 1}).items():
                coefficients[body] += coefficient * form.factor * part
        return self._of_addends(kind, coefficients)

    def _of_addends(self, kind, coefficients):
        """`kind` is the type of the sum."""
        left = {body: c for body, c in sorted(coefficients.items()) if c}
        if not left:
            return self._zero()
        first, factor = next(iter(left.items()))
        if len(left) == 1 and self._has_type(first, kind):
            return Form(factor, first)
        left = {body: c / factor for body, c in left.items()}
        body = self._bodies.add("sum", " ".join([kind, *map(str, left.values())]), left)
        self._sums[body] = left
        return Form(factor, body)

    def _elements(self, root):
        """Elements of elements are elements, and those of a sum are a sum."""
        value, form = self._terms.values[root], self._known[self._terms[root].operands[0]]
        if not form.factor:
            return self._zero()
        addends = self._sums.get(form.body, {})
        if not addends or not all(self._has_type(one, type_of(self._bodies[form.body])) for one in addends):
            addends = {form.body: Fraction(1)}
        shown = defaultdict(Fraction)
        for one, coefficient in addends.items():
            shown[self._shown(value, one)] += form.factor * coefficient
        return self._of_addends(type_of(self._terms[root]), shown)

    def _has_type(self, body, kind):
        return has_type(self._bodies[body], kind)

    def _shown(self, value, body):
        if self._bodies[body].op == "fill":
            return self._bodies.add("fill", f"1 {type_text(value.dtype, value.sizes)}")
        base = self._bodies.values.get(body) or whole(body, value.root_sizes, value.dtype)
        return term_of(self._bodies, picked(self._bodies, base, value.picks, value.sizes))

    def _applied(self, term):
        linear = (0,) if term.op == "cast" else LINEAR.get(term.op, ())
        if not type_of(term).startswith(("f", "bf")):  # whole numbers are rounded
            linear = ()
        forms = [self._known[operand] for operand in term.operands]
        factor, attributes = Fraction(1), term.attributes
        shared = linear == JOINTLY and forms and all(form.factor == forms[0].factor for form in forms)
        for i, form in enumerate(forms):
            if shared:
                factor = form.factor
            elif linear != JOINTLY and i in linear:
                factor *= form.factor
            else:
                attributes += f" times {exact_text(form.factor)}"
        return Form(factor, self._bodies.add(term.op, attributes, [form.body for form in forms])) if factor else self._zero()


def exact_text(factor):
    """ "3/4". Python writes no more than 4300 decimal digits, which many steps of an optimizer exceed, and any number of
    hexadecimal ones."""
    try:
        return str(factor)
    except ValueError:
        return f"{factor.numerator:#x}/{factor.denominator:#x}"


def factor_text(factor):
    """exact_text(), of which a reader sees the beginning."""
    text = exact_text(factor)
    return text if len(text) <= 60 else f"{text[:20]}... ({len(text)} characters)"


def changed_addends(forms, expected, found):
    """[(addend, its coefficient in the expected sum, that in the found one)] of two sums that have some in common; else []."""
    right, wrong = forms.addends(expected), forms.addends(found)
    if not right.keys() & wrong.keys():
        return []
    pairs = {one: (right.get(one, Fraction(0)), wrong.get(one, Fraction(0))) for one in right | wrong}
    return [(one, a, b) for one, (a, b) in pairs.items() if a != b]


@dataclass
class Difference:
    """A result whose term is not the expected one. `factor`: found is that times the expected sum; None: another sum."""

    key: str
    factor: Fraction = None
    stage: int = None  # that computed the found term


def factor_between(forms, expected, found):
    right, wrong = forms.of(expected), forms.of(found)
    if right.body != wrong.body:
        return None
    return Fraction(1) if right.factor == wrong.factor else wrong.factor / right.factor


def sums_text(differences):
    """ "all 16 are the expected sum in another order"; "2 are the expected sum in another order, 8 are 1/4 of the expected sum
    (stage 0), 3 are other sums"."""
    alike = defaultdict(list)
    for difference in differences:
        alike[difference.factor].append(difference.stage)
    parts = []
    for factor in sorted(alike, key=lambda f: (f is None, f != 1, f or 0)):
        count = len(alike[factor])
        verb = "is" if count == 1 else "are"
        number = f"all {count}" if count == len(differences) > 1 else str(count)
        stages = sorted({stage for stage in alike[factor] if stage is not None})
        where = f" (stage{'s' if len(stages) > 1 else ''} {', '.join(map(str, stages))})" if stages else ""
        if factor is None:
            parts.append(f"{number} {verb} {'another sum' if count == 1 else 'other sums'}")
        elif factor == 1:
            parts.append(f"{number} {verb} the expected sum in another order")
        else:
            parts.append(f"{number} {verb} {factor_text(factor)}{' times' if factor.denominator == 1 else ' of'} the expected sum{where}")
    return ", ".join(parts)
