"""The shape of a policy file: which keys there are, what each holds and what it needs beside it.

In: what the TOML parser gave. Out: the records of `policy`, or pydantic's list of all mistakes with
their paths; `policy_file` turns it into sentences with lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ValidationInfo,
    field_validator,
)

from secant.numeric.parameters import delta_of, epsilon_of, positive
from secant.policy.column_models import STRICT, ColumnModel, limit_of, number_of, positive_of
from secant.policy.norms import parse_norm, read_power
from secant.policy.policy import (
    KINDS,
    LONGEST_NAME,
    SOFTENINGS,
    USUAL,
    Limits,
    Offers,
    Policy,
    Protection,
    PublicRows,
    Softening,
    TableFacts,
)
from secant.policy.stream_models import StreamModel, width_of
from secant.policy.streams import Width
from secant.policy.values import groups_of, memory_of, seconds_of
from secant.policy.windows import LONGEST_WINDOW, Window, window_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
COMPOSITIONS = ("basic", "tight")
RENEWALS = ("monthly",)
TRUNCATIONS = ("auto", "fixed", "chosen", "race")
ANYBODY = "*"
MOST_COPIES = 1000
"""A row is counted as often as its unit gives the least amount: statements grow with it."""
CELLS = ("cells", "rows+cells")
UNITS = ("unit", "window")

_STRETCH = 'must be a stretch of time such as "30 days", or a number of steps'

V = TypeVar("V")


def _named(what: str) -> Callable[[dict[str, V]], dict[str, V]]:
    """Lower-case the names of a table; two that differ only in case are one name written twice."""

    def fold(entries: dict[str, V]) -> dict[str, V]:
        folded: dict[str, V] = {}
        for name, entry in entries.items():
            if name.lower() in folded:
                raise ValueError(f"{what} {name.lower()} is given twice (case does not count)")
            folded[name.lower()] = entry
        return folded

    return fold


def _names_of(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not value or not all(isinstance(n, str) and n for n in value):
        raise ValueError("must be a list of names")
    names = tuple(name.lower() for name in value)
    if len(set(names)) < len(names):
        raise ValueError("a name is given twice")
    return names


def _column_of(value: object) -> tuple[str, str]:
    # The name of a table may have a schema before it: what stands after the last dot is the column.
    parts = value.rsplit(".", 1) if isinstance(value, str) else []
    if len(parts) != 2 or not all(part.strip() for part in parts):
        raise ValueError('must be written "table.column"')
    return parts[0].strip().lower(), parts[1].strip().lower()


def _norm_of(value: object) -> str:
    try:
        read_power(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError('must be a norm: "l1", "l1.5", "l2", ... or "linf"') from None
    return str(value).lower()


def _distance_of(value: object) -> str:
    text = _text_of(value)
    parse_norm(text)  # raises if it is no norm; the policy keeps it as written
    return text


def _text_of(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a text that is not empty")
    return value


def _weight_of(value: int | Decimal) -> Fraction:
    return positive(value, "the distance of a row")


def _public_rows_of(value: object) -> PublicRows:
    if isinstance(value, str):
        return PublicRows(condition=_text_of(value))
    if not isinstance(value, dict) or set(value) != {"ids", "key"}:
        raise ValueError('must be a condition, or { ids = "table.column", key = "column" }')
    return PublicRows(ids=_column_of(value["ids"]), key=_text_of(value["key"]).strip().lower())


Names = Annotated[Any, BeforeValidator(_names_of)]
ColumnName = Annotated[Any, BeforeValidator(_column_of)]
Limit = Annotated[Any, BeforeValidator(limit_of)]
Norm = Annotated[Any, BeforeValidator(_norm_of)]
Distance = Annotated[Any, BeforeValidator(_distance_of)]
Text = Annotated[Any, BeforeValidator(_text_of)]
Open = Annotated[Any, BeforeValidator(_public_rows_of)]


class _Model(BaseModel):
    model_config = STRICT


class TableModel(_Model):
    """`[tables.T]`."""

    key: Names = ()
    references: Annotated[dict[str, ColumnName], AfterValidator(_named("column"))] = {}
    columns: Annotated[dict[str, ColumnModel], AfterValidator(_named("column"))] = {}
    rows: Any = None
    derived: Annotated[dict[str, Text], AfterValidator(_named("column"))] = {}

    @field_validator("rows", mode="before")
    @classmethod
    def _rows(cls, value: object) -> int | None:
        return None if value is None else limit_of(value)

    @field_validator("key", mode="wrap")
    @classmethod
    def _no_key(cls, value: object, inner: Callable[[object], object]) -> object:
        return value if value == () else inner(value)

    def record(self) -> TableFacts:
        """Give the facts of the table."""
        facts = {name: column.record() for name, column in self.columns.items()}
        return TableFacts(self.key, self.references, facts, self.rows, self.derived)


class ShareModel(_Model):
    """An amount of privacy: `{ epsilon = ..., delta = ... }`."""

    epsilon: Any
    delta: Any = 0

    @field_validator("epsilon", mode="before")
    @classmethod
    def _epsilon(cls, value: object) -> Fraction:
        return number_of(epsilon_of, value)

    @field_validator("delta", mode="before")
    @classmethod
    def _delta(cls, value: object) -> Fraction:
        return number_of(delta_of, value)


class SofteningModel(_Model):
    """`softening = { kind = ..., width = ..., slope = ... }`."""

    kind: Any
    width: Any = None
    slope: Any = None

    @field_validator("kind", mode="before")
    @classmethod
    def _kind(cls, value: object) -> object:
        if value not in SOFTENINGS:
            raise ValueError(f"must be one of {', '.join(SOFTENINGS)}")
        return value

    @field_validator("width", "slope", mode="before")
    @classmethod
    def _amount(cls, value: object, info: ValidationInfo) -> Fraction | None:
        key = str(info.field_name)
        _needed(key, value, info, only=("ramp",) if key == "width" else ("sigmoid",))
        return positive_of(value, f"a {key}")

    def record(self) -> Softening:
        """Give what is settled."""
        return Softening(self.kind, self.width, self.slope)


class ProtectionModel(ShareModel):
    """`[protections.P]`, an amount and what it protects. The other keys are judged by the kind."""

    kind: Any
    unit: Any = None
    within: Any = None
    time: Annotated[dict[str, Any], AfterValidator(_named("table"))] = {}
    tables: Any = None
    replace: Any = None
    limits: Annotated[dict[str, Limit], AfterValidator(_named("table"))] = {}
    distance: Annotated[dict[str, Distance], AfterValidator(_named("table"))] = {}
    rows: Annotated[dict[str, Norm], AfterValidator(_named("table"))] = {}
    add_remove: Annotated[dict[str, Any], AfterValidator(_named("table"))] = {}
    softening: SofteningModel | None = None
    beta: Any = None
    public_rows: Annotated[dict[str, Open], AfterValidator(_named("table"))] = {}
    truncation: Any = None
    analysts: dict[str, ShareModel] = {}
    renewal: Any = ""
    composition: Any = ""
    gamma: Any = 0
    continues: Any = ()
    personal: Any = None  # after all that it is held against

    @field_validator("kind", mode="before")
    @classmethod
    def _kind(cls, value: object) -> object:
        if value not in KINDS:
            raise ValueError(f"must be one of {', '.join(KINDS)}")
        return value

    @field_validator("unit", mode="before")
    @classmethod
    def _unit(cls, value: object, info: ValidationInfo) -> object:
        if _needed("unit", value, info, only=UNITS, always=UNITS):
            return _column_of(value)
        return None

    @field_validator("within", mode="before")
    @classmethod
    def _within(cls, value: object, info: ValidationInfo) -> Window | None:
        if not _needed("within", value, info, only=("window",), always=("window",)):
            return None
        whole = isinstance(value, int) and not isinstance(value, bool)
        width = Width(limit_of(value)) if whole else width_of(value, _STRETCH)
        window = window_of(width)
        if window.cells > LONGEST_WINDOW:
            raise ValueError(f"a stretch has at most {LONGEST_WINDOW} days, hours or steps")
        return window

    @field_validator("time", mode="after")
    @classmethod
    def _time(cls, value: dict[str, object], info: ValidationInfo) -> dict[str, str]:
        _needed("time", value, info, only=("window",), always=("window",))
        if not all(isinstance(c, str) and c.strip() for c in value.values()):
            raise ValueError('must name a column for each table: { visits = "day" }')
        return {table: str(column).lower() for table, column in value.items()}

    @field_validator("tables", mode="before")
    @classmethod
    def _tables(cls, value: object, info: ValidationInfo) -> object:
        if not _needed("tables", value, info, only=("rows", *CELLS)):
            return None
        return _names_of(value) if info.data.get("kind") == "rows" else _norm_of(value)

    @field_validator("replace", mode="before")
    @classmethod
    def _replace(cls, value: object, info: ValidationInfo) -> bool:
        if not _needed("replace", value, info, only=("rows",)):
            return False
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value

    @field_validator("limits", mode="after")
    @classmethod
    def _limits(cls, value: dict[str, int], info: ValidationInfo) -> dict[str, int]:
        _needed("limits", value, info, only=UNITS)
        return value

    @field_validator("distance", mode="after")
    @classmethod
    def _distance(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        _needed("distance", value, info, only=CELLS, always=CELLS)
        return value

    @field_validator("rows", mode="after")
    @classmethod
    def _rows(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        _needed("rows", value, info, only=CELLS)
        return value

    @field_validator("add_remove", mode="after")
    @classmethod
    def _add_remove(cls, value: dict[str, object], info: ValidationInfo) -> dict[str, Fraction]:
        _needed("add_remove", value, info, only=("rows+cells",), always=("rows+cells",))
        return {table: number_of(_weight_of, weight) for table, weight in value.items()}

    @field_validator("softening", "public_rows", mode="after")
    @classmethod
    def _of_cells(cls, value: object, info: ValidationInfo) -> object:
        _needed(str(info.field_name), value, info, only=CELLS)
        return value

    @field_validator("beta", mode="before")
    @classmethod
    def _beta(cls, value: object, info: ValidationInfo) -> Fraction | None:
        _needed("beta", value, info, only=CELLS)
        return positive_of(value, "beta")

    @field_validator("analysts", mode="after")
    @classmethod
    def _analysts(cls, value: dict[str, ShareModel]) -> dict[str, ShareModel]:
        for name in value:
            if name != ANYBODY and not name.strip():
                raise ValueError('an analyst needs a name; "*" stands for all who are not named')
            if not name.isprintable() or len(name) > LONGEST_NAME:
                raise ValueError(
                    f"an analyst's name has up to {LONGEST_NAME} characters, all of them printable"
                )
        return value

    @field_validator("gamma", mode="before")
    @classmethod
    def _gamma(cls, value: object) -> Fraction:
        try:
            return number_of(delta_of, value)
        except ValueError:
            raise ValueError("gamma must be at least 0 and less than 1") from None

    @field_validator("continues", mode="before")
    @classmethod
    def _continues(cls, value: object) -> tuple[str, ...]:
        return () if value == () else _names_of(value)

    @field_validator("personal", mode="before")
    @classmethod
    def _personal(cls, value: object, info: ValidationInfo) -> Offers | None:
        """Read who gives how much; what would give somebody more away than they gave is refused."""
        if not _needed("personal", value, info, only=("unit",)):
            return None
        if not isinstance(value, dict) or set(value) != {"column", "offers"}:
            raise ValueError('must be { column = "table.column", offers = [epsilon, ...] }')
        column, listed, field = _column_of(value["column"]), value["offers"], info.data.get
        if not isinstance(listed, list) or not listed:
            raise ValueError("offers must be a list of the epsilons that anybody may give")
        offers = Offers(column, tuple(sorted({number_of(epsilon_of, x) for x in listed})))
        unit: tuple[str, str] | None = field("unit")
        if unit is not None and column[0] != unit[0]:
            raise ValueError("the column must belong to the table of the unit")
        if field("epsilon") is not None and offers.amounts[-1] != field("epsilon"):
            raise ValueError("the largest offer must be the epsilon of the protection")
        if field("delta") or field("composition") == "tight":
            raise ValueError("goes without delta and without tight composition")
        if field("truncation") not in (None, "auto", "fixed"):
            raise ValueError("goes with declared limits, not with limits that are chosen")
        if offers.copies[-1] > MOST_COPIES:
            raise ValueError(f"the offers must be in proportions of up to {MOST_COPIES} to 1")
        return offers

    @field_validator("truncation", mode="before")
    @classmethod
    def _truncation(cls, value: object, info: ValidationInfo) -> object:
        if not _needed("truncation", value, info, only=("unit",)):
            return TRUNCATIONS[0]
        if value not in TRUNCATIONS:
            raise ValueError(f"must be one of {', '.join(TRUNCATIONS)}")
        return value

    @field_validator("renewal", "composition", mode="before")
    @classmethod
    def _one_of(cls, value: object, info: ValidationInfo) -> object:
        allowed = RENEWALS if info.field_name == "renewal" else COMPOSITIONS
        if value != "" and value not in allowed:
            raise ValueError(f"must be {' or '.join(allowed)}")
        if value != "" and info.data.get("kind") == "window":
            raise ValueError('does not go with kind = "window": its account slides, and adds up')
        return value

    def record(self, name: str) -> Protection:
        """Give the protection; `groups` among the limits is the limit of groups."""
        limits = dict(self.limits)
        return Protection(
            name=name,
            kind=self.kind,
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            within=self.within,
            time=self.time,
            tables=self.tables if self.kind == "rows" else None,
            replace=self.replace,
            groups=limits.pop("groups", None),
            limits=limits,
            distance=self.distance,
            row_norms=self.rows,
            table_norm=self.tables if isinstance(self.tables, str) else "l1",
            add_remove=self.add_remove,
            softening=self.softening.record() if self.softening else None,
            beta=self.beta,
            public_rows=self.public_rows,
            truncation=self.truncation,
            analysts={who: (share.epsilon, share.delta) for who, share in self.analysts.items()},
            renewal=self.renewal,
            composition=self.composition,
            gamma=self.gamma,
            continues=self.continues,
            personal=self.personal,
        )


def _needed(
    key: str,
    value: object,
    info: ValidationInfo,
    *,
    only: tuple[str, ...],
    always: tuple[str, ...] = (),
) -> bool:
    """Tell whether a key is given; refuse it where it has no meaning, ask for it where it must."""
    kind = info.data.get("kind")
    is_set = value is not None and value != {}
    if kind is None:  # the kind itself is wrong, and is reported
        return False
    if is_set and kind not in only:
        raise ValueError(f'{key} belongs to kind = "{only[0]}", not to kind = "{kind}"')
    if not is_set and kind in always:
        raise ValueError(f'is missing: kind = "{kind}" needs it')
    return is_set


class DatabaseModel(_Model):
    """`[database]`."""

    source: Annotated[Any, BeforeValidator(lambda v: "" if v is None else _text_of(v))] = None
    statement_seconds: Annotated[float, BeforeValidator(seconds_of)] = USUAL.seconds
    memory: Annotated[str, BeforeValidator(memory_of)] = USUAL.memory
    groups: Annotated[int, BeforeValidator(groups_of)] = USUAL.groups
    public: Any = ()

    @field_validator("public", mode="before")
    @classmethod
    def _public(cls, value: object) -> tuple[str, ...]:
        if value in ((), []):
            return ()
        if not isinstance(value, list):
            raise ValueError("must be a list of tables")
        names = _names_of(value)
        if any("*" in name for name in names):
            raise ValueError("name each table that is public; there is no sign for all of them")
        return names

    def limits(self) -> Limits:
        """Give what one question may use."""
        return Limits(self.statement_seconds, self.memory, self.groups)


class LedgerModel(_Model):
    """`[ledger]`."""

    location: Text | None = None
    retired: Any = ()

    @field_validator("retired", mode="before")
    @classmethod
    def _retired(cls, value: object) -> tuple[str, ...]:
        return () if value == () else _names_of(value)


class PolicyModel(_Model):
    """The whole file."""

    database: DatabaseModel | None = None
    ledger: LedgerModel | None = None
    tables: Annotated[dict[str, TableModel], AfterValidator(_named("table"))] = {}
    protections: dict[str, ProtectionModel]
    alternatives: Any = ()
    accept: Any = ()
    streams: dict[str, StreamModel] = {}
    views: Annotated[dict[str, Text], AfterValidator(_named("view"))] = {}

    @field_validator("protections", mode="after")
    @classmethod
    def _protections(
        cls, value: dict[str, ProtectionModel], info: ValidationInfo
    ) -> dict[str, ProtectionModel]:
        if not value:
            raise ValueError("a policy without a protection protects nothing")
        _named("protection")(value)
        for name in value:
            if not _NAME.match(name):
                raise ValueError(
                    f"{name!r} must be letters, digits, - and _, and start with a letter"
                )
        in_force = {name.casefold() for name in value}
        ledger = info.data.get("ledger")
        past = [before for protection in value.values() for before in protection.continues]
        for name in (*past, *(ledger.retired if ledger else ())):
            if name.casefold() in in_force:
                raise ValueError(f"{name} is in force: it is neither continued nor retired")
        return value

    @field_validator("alternatives", mode="before")
    @classmethod
    def _alternatives(cls, value: object, info: ValidationInfo) -> tuple[str, ...]:
        if value == ():
            return ()
        _names_of(value)  # the shape; protections keep their case
        names = tuple(value) if isinstance(value, list) else (str(value),)
        for name in names:
            if "protections" in info.data and name not in info.data["protections"]:
                raise ValueError(f"there is no protection {name}")
        if len(names) < 2:
            raise ValueError("needs two protections to choose from")
        return names

    @field_validator("accept", mode="before")
    @classmethod
    def _accept(cls, value: object) -> tuple[str, ...]:
        return () if value == () else _names_of(value)

    @field_validator("streams", mode="after")
    @classmethod
    def _streams(
        cls, value: dict[str, StreamModel], info: ValidationInfo
    ) -> dict[str, StreamModel]:
        for name, stream in value.items():
            if not _NAME.match(name) or len(name) > LONGEST_NAME:
                raise ValueError(f"{name!r} is no name for a stream; use letters, digits, _ and -")
            protections = info.data.get("protections", {})
            if (
                protections
                and stream.protection is not None
                and stream.protection not in protections
            ):
                raise ValueError(f"{name}: there is no protection {stream.protection}")
        return value

    def record(self, path: FilePath | None, lines: Mapping[tuple[str, ...], int]) -> Policy:
        """Give the policy."""
        return Policy(
            source=(self.database.source if self.database else None) or "",
            tables={name: table.record() for name, table in self.tables.items()},
            protections=tuple(p.record(name) for name, p in self.protections.items()),
            public=self.database.public if self.database else (),
            alternatives=self.alternatives,
            accept=self.accept,
            ledger=self.ledger.location if self.ledger else None,
            retired=self.ledger.retired if self.ledger else (),
            limits=(self.database or DatabaseModel()).limits(),
            streams=tuple(s.record(name) for name, s in self.streams.items()),
            views=self.views,
            path=path,
            lines=lines,
        )


_SECTIONS: dict[str, type[BaseModel]] = {
    "database": DatabaseModel,
    "ledger": LedgerModel,
    "protections": ProtectionModel,
    "streams": StreamModel,
}


def allowed_keys(path: tuple[str | int, ...]) -> list[str]:
    """Give the keys that may stand where the last key of a path stands."""
    model: type[BaseModel] = PolicyModel
    if path[0] == "tables":
        model = ColumnModel if len(path) > 4 else TableModel
    elif len(path) > 4:
        model = ShareModel
    elif len(path) == 4 and path[2] == "softening":
        model = SofteningModel
    elif path[0] in _SECTIONS and len(path) > 1:
        model = _SECTIONS[str(path[0])]
    return list(model.model_fields)
