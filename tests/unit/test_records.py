"""Records of the house beside those of the standard library."""

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from dataclasses import FrozenInstanceError, field
from typing import Any, Generic, TypeVar

import pytest

import hermes
from hermes.domain.records import dataclass

T = TypeVar("T")


def both(**options: bool) -> list[type[Any]]:
    made = []
    for make in (dataclass, dataclasses.dataclass):

        @make(slots=True, **options)  # type: ignore[operator] # both take the same
        class Point(Generic[T]):
            """A point."""

            x: int
            y: "int" = 2
            tags: list[str] = field(default_factory=list)
            hidden: int = field(default=7, repr=False, compare=False)

            def sum(self) -> int:
                return self.x + self.y

        made.append(Point)
    return made


@pytest.mark.parametrize("options", [{"frozen": True}, {}, {"frozen": True, "kw_only": True}])
def test_a_record_behaves_as_the_standard_library_s(options: dict[str, bool]) -> None:
    ours, theirs = both(**options)
    for one in (ours, theirs):
        point = one(x=1)
        assert (point.x, point.y, point.tags, point.hidden, point.sum()) == (1, 2, [], 7, 3)
        assert point == one(x=1, hidden=8) != one(x=2)
        assert point != (1, 2, [])
        assert one(x=1).tags is not one(x=1).tags
        assert dataclasses.replace(point, y=5).y == 5
        assert dataclasses.asdict(point) == {"x": 1, "y": 2, "tags": [], "hidden": 7}
        assert copy.deepcopy(point) == point
        assert dataclasses.is_dataclass(one)
        assert not hasattr(point, "__dict__")
        with pytest.raises(TypeError, match="missing 1 required"):
            one()
        with pytest.raises(TypeError, match="unexpected keyword"):
            one(x=1, z=2)
    assert repr(ours(x=1)) == repr(theirs(x=1))
    assert ours.__match_args__ == theirs.__match_args__
    assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(theirs)]
    assert list(inspect.signature(ours.__init__).parameters) == list(inspect.signature(theirs.__init__).parameters)


@dataclass(frozen=True, slots=True)
class Fixed:
    """One that does not change."""

    name: str
    size: int = 0


def test_one_that_is_frozen_has_a_hash_and_refuses_to_change() -> None:
    one = Fixed("a")
    assert hash(one) == hash(Fixed("a"))
    assert {one: 1}[Fixed("a", 0)] == 1
    with pytest.raises(FrozenInstanceError):
        one.name = "b"  # type: ignore[misc] # that is the point
    with pytest.raises(FrozenInstanceError):
        del one.name  # type: ignore[misc] # that is the point
    assert pickle.loads(pickle.dumps(one)) == one
    match one:
        case Fixed("a", size):
            assert size == 0


def test_one_that_changes_has_no_hash() -> None:
    ours, _ = both()
    with pytest.raises(TypeError, match="unhashable"):
        hash(ours(x=1))


def test_every_record_of_the_house_is_described_and_filled_as_the_standard_library_would() -> None:
    seen = 0
    for module in pkgutil.walk_packages(hermes.__path__, "hermes."):
        if "migrations" in module.name or "__main__" in module.name:
            continue
        for record in vars(importlib.import_module(module.name)).values():
            if not (isinstance(record, type) and dataclasses.is_dataclass(record)):
                continue
            seen += 1
            fields = dataclasses.fields(record)
            names = [one.name for one in fields if one.init]
            given = {name: object() for name in names}
            if "__post_init__" in vars(record):
                continue
            made = record(**given)
            assert [getattr(made, name) for name in names] == list(given.values()), record
    assert seen > 150
