"""Errors: each carries the one sentence that the program would print."""

from __future__ import annotations


class Error(Exception):
    """The base of all errors of memfathom."""


class JobError(Error, ValueError):
    """The job or the request is wrong; the sentence says what, where and what to do."""


class UndecidedError(JobError):
    """A key that may change the memory was not read, or no GPU was named: there is no yes or no."""


class DeviceError(Error, RuntimeError):
    """A device, a library or a file system failed."""


class InternalError(Error, RuntimeError):
    """A bug of memfathom; please report it."""


class DoesNotFitError(Error, RuntimeError):
    """Raised by the integrations when a job does not fit on its GPU; the sentence has the advice."""


def error_for(status: int, sentence: str) -> Error:
    """The exception of a status of the C interface (include/memfathom/memfathom.h)."""
    if status == 2:
        return JobError(sentence)
    if status in (4, 5):
        return DeviceError(sentence)
    return InternalError(sentence)
