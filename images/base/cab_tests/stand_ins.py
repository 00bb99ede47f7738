"""Python's code under test as the tests see it: modules and objects that ask the process that has them."""

from __future__ import annotations

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import json
import types
from collections.abc import Callable
from typing import Any, NoReturn

from cab_tests.errors import NoAnswerError
from cab_tests.peer import Peer
from cab_tests.plain import pack, unpack
from cab_tests.processes import PROGRAM


class CodeError(Exception):
    """The code under test raised what is no exception of Python's own."""


class StandIn:
    """For what is no plain data: it stays with the code under test, and only its number is here."""

    _code: Code
    _number: int

    def __init__(self, code: Code, number: int) -> None:
        self.__dict__.update(_code=code, _number=number)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._code.ask("get", self._number, name)

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._code.ask("call", self._number, list(args), kwargs)

    def _no_value(self, *_: object) -> bool:
        raise TypeError("no plain data: it has no truth and no equal")

    __bool__ = __eq__ = __hash__ = _no_value


class StandInModule(types.ModuleType):
    """A module of the code under test."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["__code__"], name)


class Code(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules of the workdir as stand-ins, and speaks to the process that has them."""

    def __init__(self, workdir: str, give_up: Callable[[str], NoReturn]) -> None:
        self._peer = Peer([*PROGRAM, "serve", workdir])
        self._give_up = give_up

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec:
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["__code__"] = self.ask("import", module.__name__)

    def ask(self, *request: object) -> object:
        """One request and its answer. Raises what the code under test raised.

        Without an answer the test that is under way ends here.
        """
        question = json.dumps(pack(list(request), self._number_of)).encode()
        try:
            returned, value = self._read(self._peer.exchange(question))
        except NoAnswerError as error:
            self._give_up(f"no answer from the code under test: {error}")
        if returned:
            return value
        kind, message = value
        raised = getattr(builtins, kind, None)
        if isinstance(raised, type) and issubclass(raised, Exception):
            with contextlib.suppress(TypeError):  # a few take more than a message
                raise raised(message)
        raise CodeError(f"{kind}: {message}")

    def _read(self, line: bytes) -> tuple[bool, Any]:
        """Whether it returned, and what; else the kind and the text of what it raised."""
        try:
            returned, value = unpack(json.loads(line), lambda number: StandIn(self, number))
            if returned is True:
                return True, value
            kind, message = map(str, value)
        except Exception as error:  # noqa: BLE001 - the code under test can answer anything
            raise NoAnswerError(f"{line[:80]!r} is none ({type(error).__name__})") from None
        return False, (kind, message)

    def _number_of(self, value: object) -> int:
        if not isinstance(value, StandIn):
            raise TypeError(
                f"tests can hand plain data to the code under test, and no {type(value).__name__}"
            )
        return value._number
