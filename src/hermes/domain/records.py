"""`dataclass` as in the standard library, for a fraction of its cost at start: what is compiled, is at first use.

The house has some two hundred records, and the standard library compiles six functions for each while it is imported:
two fifths of the time from the command to the first request. Type checkers see the original. Invariant: a record
behaves as the standard library's does; a test compares the two over every record of the house.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - it is given on under its own name
else:

    def dataclass(*, slots: bool, frozen: bool = False, kw_only: bool = False, **more: bool) -> Callable[[type], type]:
        """Make a record of a class that has no base of its own; see `dataclasses.dataclass`."""
        if not slots:
            raise TypeError("a record of the house has slots; take the standard library's dataclass for another")
        return lambda cls: _made(cls, frozen=frozen, kw_only=kw_only, has_repr=more.get("repr", True))


def _made(cls: type[Any], *, frozen: bool, kw_only: bool, has_repr: bool) -> type[Any]:
    # Those of the class itself; `inspect`, which would say the same, is what we save.
    annotations = cls.__dict__.get("__annotations__", {})  # noqa: RUF063
    names = tuple(annotations)
    body = {name: value for name, value in cls.__dict__.items() if name not in {"__dict__", "__weakref__", *names}}
    given = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    body["__slots__"] = names
    in_init = [name for name in names if _has(given, name, "init")]
    body["__match_args__"] = () if kw_only else tuple(in_init)
    body["__dataclass_fields__"] = _Described(cls, annotations, given, frozen=frozen, kw_only=kw_only)
    body["__dataclass_params__"] = _Params(frozen=frozen, kw_only=kw_only)
    compared = _getter(tuple(name for name in names if _has(given, name, "compare")))
    body.setdefault("__eq__", _equal(compared))
    body.setdefault("__hash__", (lambda self: hash(compared(self))) if frozen else None)
    if has_repr:
        body.setdefault("__repr__", _shown(tuple(name for name in names if _has(given, name, "repr"))))
    if frozen:
        body |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
        body |= {"__getstate__": lambda self: [getattr(self, n) for n in names], "__setstate__": _restore(names)}

    def first(self: Any, /, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - any record
        made.__init__ = _init(cls, annotations, given, frozen=frozen, kw_only=kw_only)
        made.__init__(self, *args, **kwargs)

    body.setdefault("__init__", first)
    kind: Any = type(cls)
    made: type[Any] = kind(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _has(given: dict[str, Any], name: str, what: str) -> bool:
    value = given.get(name)
    return bool(getattr(value, what)) if isinstance(value, dataclasses.Field) else True


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    match names:
        case ():
            return lambda _record: ()
        case (name,):
            return lambda record: (getattr(record, name),)
        case _:
            return attrgetter(*names)


def _equal(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], Any]:
    def equal(self: Any, other: object) -> Any:  # noqa: ANN401 - any record
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _shown(names: tuple[str, ...]) -> Callable[[Any], str]:
    def shown(self: Any) -> str:  # noqa: ANN401 - any record
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return shown


def _refuse_set(_self: object, name: str, _value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(_self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _restore(names: tuple[str, ...]) -> Callable[[Any, list[Any]], None]:
    def restore(self: Any, state: list[Any]) -> None:  # noqa: ANN401 - any record
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return restore


def _init(
    cls: type[Any], annotations: dict[str, Any], given: dict[str, Any], *, frozen: bool, kw_only: bool
) -> Callable[..., None]:
    """Write the function that fills a record, as a person would."""
    known: dict[str, Any] = {"put": object.__setattr__, "MISSING": dataclasses.MISSING}
    words, lines = ["self", *(["*"] if kw_only and annotations else [])], []
    for name in annotations:
        value: Any = given.get(name, dataclasses.MISSING)
        factory: Any = dataclasses.MISSING
        if isinstance(value, dataclasses.Field):
            factory, value = value.default_factory, value.default
        known |= {f"default_{name}": value, f"make_{name}": factory}
        said = name
        if not _has(given, name, "init"):
            said = f"make_{name}()" if factory is not dataclasses.MISSING else f"default_{name}"
        elif factory is not dataclasses.MISSING:
            words.append(f"{name}=MISSING")
            said = f"make_{name}() if {name} is MISSING else {name}"
        else:
            words.append(name if value is dataclasses.MISSING else f"{name}=default_{name}")
        lines.append(f"  put(self, {name!r}, {said})" if frozen else f"  self.{name} = {said}")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    text = f"def __init__({', '.join(words)}):\n" + ("\n".join(lines) or "  pass")
    exec(text, known)  # noqa: S102 - the text is made of the names of fields alone
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**annotations, "return": None}
    return init


class _Described:
    """`__dataclass_fields__`, which `replace`, `fields` and msgspec read, as the standard library makes it."""

    def __init__(
        self, cls: type[Any], annotations: dict[str, Any], given: dict[str, Any], *, frozen: bool, kw_only: bool
    ) -> None:
        self._body = {"__annotations__": annotations, "__module__": cls.__module__, **given}
        self._name = cls.__name__
        self._flags = {"frozen": frozen, "kw_only": kw_only}
        self._fields: dict[str, Any] | None = None

    def __get__(self, _instance: object, _owner: type) -> dict[str, Any]:
        if self._fields is None:
            shadow: Any = type(self._name, (), dict(self._body))
            made = dataclasses.dataclass(init=False, repr=False, eq=False, **self._flags)(shadow)
            self._fields = made.__dataclass_fields__
        return self._fields


class _Params:
    """`__dataclass_params__`, for whoever asks whether a record is frozen."""

    def __init__(self, *, frozen: bool, kw_only: bool) -> None:
        self.init = self.repr = self.eq = self.slots = True
        self.order = self.unsafe_hash = self.weakref_slot = False
        self.match_args = True
        self.frozen, self.kw_only = frozen, kw_only
