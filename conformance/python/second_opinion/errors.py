"""Why a file gets no opinion."""


class Unsupported(Exception):
    """The text is one line: what, where, and what would be accepted."""
