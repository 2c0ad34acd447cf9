"""Errors travel: between processes, and as copies, they stay what they are."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from secant import errors
from secant.errors import SecantError, Span

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, SecantError) and kind is not SecantError
]


def made(kind: type[SecantError]) -> SecantError:
    code = next(code for code, _ in errors.CODES if code.startswith(kind.family))
    return kind(code, "m", hint="h", text="SELECT x", span=Span(7, 8), details=("d",))


def refuse() -> None:
    raise made(errors.Refused)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy]
)
def test_an_error_is_the_same_in_another_place(kind, again):
    error = made(kind)
    found = again(error)
    assert type(found) is kind
    assert found.to_dict() == error.to_dict()
    assert (str(found), found.args, found.exit_status) == (
        str(error),
        error.args,
        error.exit_status,
    )


def test_a_pool_of_processes_hands_a_refusal_on():
    """What could not be unpickled broke the whole pool, and the refusal was lost."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        with pytest.raises(errors.Refused) as found:
            pool.submit(refuse).result(timeout=60)
        assert found.value.to_dict() == made(errors.Refused).to_dict()
        assert pool.submit(abs, -3).result(timeout=60) == 3
