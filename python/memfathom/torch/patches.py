"""Patches: attributes replaced for the time of a recording."""

_ABSENT = object()


class Patches:
    def __init__(self):
        self._undo = []

    def set(self, owner, name, value):
        self._undo.append((owner, name, owner.__dict__.get(name, _ABSENT) if isinstance(owner, type) else getattr(owner, name, _ABSENT)))
        setattr(owner, name, value)

    def call_at_end(self, function):
        self._undo.append((function, None, None))

    def restore(self):
        for owner, name, value in reversed(self._undo):
            if name is None:
                owner()
            elif value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        self._undo.clear()
