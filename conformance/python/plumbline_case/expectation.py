"""By what a case is judged, as its files were before the backend started, which can write them."""

import functools
import io
import os

from .schema import check, parse_json
from .tensors import stored_in


class Expectation:
    """The expected results of an exported case, and what of case.json a verdict depends on. Its files are read at once, and
    understood when they are needed."""

    def __init__(self, folder):
        self._folder = folder
        self._case, self._expected = self._bytes("case.json"), self._bytes("expected.safetensors")

    def _path(self, name):
        return os.path.join(self._folder, name)

    def _bytes(self, name):
        """None without such a file."""
        if not os.path.exists(self._path(name)):
            return None
        with open(self._path(name), "rb") as file:
            return file.read()

    @functools.cached_property
    def json(self):
        """case.json. Raises FormatError, with the place, if it violates its schema."""
        document = parse_json(self._case, self._path("case.json"))
        check(document, "case", self._path("case.json"))
        return document

    truth, dtype, microbatches = (property(lambda self, name=name: self.json[name]) for name in ("truth", "dtype", "microbatches"))
    pipeline_ranks, replicas = (property(lambda self, name=name: self.json["mesh"][name]) for name in ("pp", "dp"))

    def why_not_judged(self):
        """Why plumbline-case cannot judge it; "" if it can."""
        if self.truth != "exact":
            return f"{self.truth} truth needs the oracle: plumbline check"
        return "" if self._expected is not None else "the case was exported without --expected"

    def expected(self):
        """{result key: Stored}"""
        return stored_in(io.BytesIO(self._expected), len(self._expected), self._path("expected.safetensors"))
