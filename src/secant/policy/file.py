"""The policy file: TOML in, a `Policy` out, or one error that names every mistake with its line.

In: the owner's text. Out: records whose names are lower-cased, whose numbers are exact and whose
facts make sense on their own. Whether they fit the database is asked in `policy_check`. No data is
read here, and a file with one mistake gives no policy at all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from secant.errors import PolicyError, UsageError, meant, public_api
from secant.policy.check import check_policy, fit_policy
from secant.policy.models import PolicyModel, allowed_keys
from secant.policy.policy import Policy
from secant.policy.toml_lines import Path, line_numbers, line_of

__all__ = ["check_policy", "fit_policy", "load_policy", "policy_of", "read_policy"]

LARGEST_FILE = 4_000_000  # characters; a policy is written by a person


@public_api
def load_policy(path: str | FilePath) -> Policy:
    """Read a policy file.

    >>> load_policy("missing.toml")
    Traceback (most recent call last):
    secant.errors.PolicyError: POL-001  there is no policy file missing.toml
      Now: write one with `secant init SOURCE`, or name another with --policy
    """
    file_path = FilePath(path)
    if not str(path):
        hint = "give a path, or unset SECANT_POLICY"
        raise PolicyError("POL-001", "the name of the policy file is empty", hint=hint)
    try:
        with file_path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        hint = "write one with `secant init SOURCE`, or name another with --policy"
        raise PolicyError("POL-001", f"there is no policy file {file_path}", hint=hint) from None
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise PolicyError("POL-001", f"cannot read {file_path}: {reason}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"cannot read {file_path}: line {line} is not UTF-8"
        raise PolicyError("POL-001", message) from None
    return read_policy(text, file_path)


@public_api
def read_policy(text: str, path: FilePath | None = None) -> Policy:
    """Read a policy from its text; `path` is where the text came from."""
    if len(text) > LARGEST_FILE:
        raise PolicyError("POL-001", "the policy file is larger than 4 MB")
    return _checked(*_parse(text, path), path)


@public_api
def policy_of(sections: Mapping[str, object] | None = None, /, **more: object) -> Policy:
    """Give a policy from Python values: the sections and keys of a policy file, with the same checks and messages.

    >>> policy = policy_of(protections={"visits": {"kind": "rows", "epsilon": 3}})
    >>> policy.protections[0].epsilon
    Fraction(3, 1)
    """
    if sections is not None and not isinstance(sections, Mapping):
        raise UsageError(
            "USE-001",
            "a policy is made of sections",
            hint='pass {"protections": {"NAME": {"kind": "rows", "epsilon": 3}}}',
        )
    return _checked(_as_toml({**(sections or {}), **more}), {}, None)


def policy_from(policy: str | FilePath | Mapping[str, Any] | Policy) -> Policy:
    """Give the policy that a caller means: one that was read, a file, or sections."""
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Mapping):
        return policy_of(policy)
    if isinstance(policy, (str, FilePath)):
        return load_policy(policy)
    raise UsageError(
        "USE-001",
        "the policy is neither a file nor a Policy",
        hint="pass a path, a dict of sections, or secant.Policy(…)",
    )


def _as_toml(value: Any) -> Any:
    """Give Python values as the parser of TOML would: numbers exactly as they print, names as text."""
    if isinstance(value, Mapping):
        return {str(key): _as_toml(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_as_toml(entry) for entry in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()  # a number of numpy
    if isinstance(value, float):
        return Decimal(repr(value))
    return str(value) if isinstance(value, FilePath) else value


def _checked(parsed: Mapping[str, Any], lines: dict[Path, int], path: FilePath | None) -> Policy:
    try:
        model = PolicyModel.model_validate(parsed)
    except ValidationError as error:
        mistakes = [_mistake(entry, lines) for entry in error.errors(include_url=False)]
        raise _wrong(path, [text for _, text in sorted(mistakes)]) from None
    folded: dict[tuple[str, ...], int] = {}
    for key_path, line in lines.items():
        folded.setdefault(tuple(str(part).lower() for part in key_path), line)
    return model.record(path, folded)


def _parse(text: str, path: FilePath | None) -> tuple[dict[str, Any], dict[Path, int]]:
    try:
        return tomllib.loads(text, parse_float=Decimal), line_numbers(text)
    except tomllib.TOMLDecodeError as error:
        # The parser writes its place at the end, "(at line 3, column 7)"; ours stands in front.
        sentence, _, position = str(error).rpartition(" (at ")
        line = re.match(r"line (\d+)", position)
        where = line[1] if line else len(text.splitlines())  # else: "end of document"
        raise _wrong(path, [f"line {where}: {sentence[:1].lower()}{sentence[1:]}"]) from None
    except RecursionError:
        raise _wrong(path, ["values are nested too deeply"]) from None
    except ValueError:  # Python refuses to read a whole number of thousands of digits
        raise _wrong(path, ["a number has too many digits"]) from None


def _wrong(path: FilePath | None, mistakes: list[str]) -> PolicyError:
    where = f"{path} has" if path else "the policy has"
    count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    what = "lines" if path else "keys"
    hint = f"correct the {what} above; nothing was read or run"
    return PolicyError("POL-002", f"{where} {count}", details=tuple(mistakes), hint=hint)


def _mistake(entry: Mapping[str, Any], lines: dict[Path, int]) -> tuple[int, str]:
    """Say one mistake in the owner's words, with its line in front."""
    path = tuple(part for part in entry["loc"] if part != "[key]")
    kind, message = entry["type"], entry["msg"]
    if kind == "extra_forbidden":
        message = f"unknown key{_nearest(path)}"
    elif kind == "missing":
        message = "is missing"
    elif kind == "value_error":
        message = str(entry["ctx"]["error"])
    elif kind in ("model_type", "model_attributes_type", "dict_type"):
        message = "must be a table"
    else:
        message = message[:1].lower() + message[1:]
    line = line_of(lines, path)
    dotted = ".".join(str(part) for part in path)
    return line or 0, f"{f'line {line}: ' if line else ''}{dotted}: {message}"


def _nearest(path: Path) -> str:
    """Suggest the known key that an unknown one may have been meant as."""
    keys = allowed_keys(path)
    return meant(str(path[-1]), keys, "; ") or f"; known here: {', '.join(keys)}"
