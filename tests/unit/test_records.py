"""Records are what `dataclass(frozen=True, slots=True)` makes; only when their methods are compiled differs."""

from __future__ import annotations

import copy
import inspect
import pickle
from abc import ABC, abstractmethod
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from secant.records import by_identity, frozen


class Plain:
    """Fields of every kind."""

    first: int
    second: str = "two"
    third: list[int] = field(default_factory=list, compare=False, repr=False)
    fourth: int = field(default=4, init=False)
    fifth: float = field(default=5.0, kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "fourth", self.first * 2)


STANDARD = dataclass(frozen=True, slots=True)(Plain)
Ours = frozen(Plain)
GIVEN = [((1,), {}), ((1, "x"), {}), ((1,), {"third": [3], "fifth": 0.0}), ((2,), {"second": "y"})]


@frozen
class Point:
    """Two numbers, at the top of the module so that it can be pickled."""

    x: int
    y: int = 0


@pytest.mark.parametrize(("places", "names"), GIVEN)
def test_a_record_holds_says_and_hashes_what_a_dataclass_does(places, names):
    ours, standard = Ours(*places, **names), STANDARD(*places, **names)
    assert [(f.name, getattr(ours, f.name)) for f in fields(ours)] == [
        (f.name, getattr(standard, f.name)) for f in fields(standard)
    ]
    assert repr(ours) == repr(standard)
    assert hash(ours) == hash(standard)


def test_records_are_equal_exactly_where_dataclasses_are():
    all_ours = [Ours(*p, **n) for p, n in GIVEN]
    standards = [STANDARD(*p, **n) for p, n in GIVEN]
    for a, b in zip(all_ours, standards, strict=True):
        assert [a == x for x in all_ours] == [b == x for x in standards]
        assert a != b  # of another class
    assert Ours(1) == Ours(1)
    assert Ours(1) is not Ours(1)


def test_arguments_are_those_of_a_dataclass():
    assert inspect.signature(Ours) == inspect.signature(STANDARD)
    assert Ours.__match_args__ == STANDARD.__match_args__
    with pytest.raises(TypeError):
        Ours()
    with pytest.raises(TypeError):
        Ours(1, unknown=2)


def test_a_factory_makes_a_new_value_each_time():
    assert Ours(1).third is not Ours(1).third


def test_a_record_cannot_be_changed():
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        del point.x
    with pytest.raises(FrozenInstanceError):
        point.z = 3
    assert replace(point, y=5) == Point(1, 5)


def test_a_record_is_copied_and_pickled():
    point = Point(1, 2)
    assert pickle.loads(pickle.dumps(point)) == copy.copy(point) == copy.deepcopy(point) == point


def test_what_a_class_says_itself_holds():
    @frozen
    class Odd:
        """Equal to every other of its kind."""

        x: int

        def __eq__(self, other):
            return isinstance(other, Odd)

        def __hash__(self):
            return 7

        def __repr__(self):
            return "odd"

    assert (Odd(1), hash(Odd(1)), repr(Odd(1))) == (Odd(2), 7, "odd")


def test_records_inherit():
    @frozen
    class Base(ABC):
        """Has a field and asks for a method."""

        x: int

        @abstractmethod
        def told(self):
            """Say something."""

    @frozen
    class Heir(Base):
        """Adds a field."""

        y: int = 2

        def told(self):
            return self.x + self.y

    with pytest.raises(TypeError):
        Base(1)
    assert (Heir(1).told(), Heir(1), repr(Heir(3))[-14:]) == (3, Heir(1, 2), "Heir(x=3, y=2)")


def test_a_record_by_identity_equals_only_itself():
    @by_identity
    class Node:
        """Compared as an object."""

        x: int

    one = Node(1)
    assert one == one
    assert one != Node(1)
    assert len({one, Node(1), one}) == 2


def test_two_records_that_hold_each_other_are_shown():
    @frozen
    class Holder:
        """Holds a list."""

        held: list[object]

    holder = Holder([])
    holder.held.append(holder)
    assert "..." in repr(holder)


def test_methods_are_compiled_when_they_are_first_looked_up():
    @frozen
    class Late:
        """Nothing asked of it yet."""

        x: int

    before = {name: type(vars(Late)[name]).__name__ for name in ("__init__", "__eq__", "__hash__")}
    assert set(before.values()) == {"_Compiled"}
    assert {Late(1)} == {Late(1)}
    assert all(inspect.isfunction(vars(Late)[name]) for name in before)
