"""An agent's conversation: what it is told, what it may spend, and what never reaches it."""

import asyncio
import json

import pytest
from clinic_service import CANARY, COUNT, POLICY, SHARES, service_at

from secant.errors import BudgetError, SecantError, UsageError
from secant.service.agents import Conversation, build


@pytest.fixture
def service(tmp_path):
    found = service_at(tmp_path, POLICY + SHARES)
    yield found
    found.close()


def called(service, calls, cap="1", name="ada"):
    """Call tools one after another, as a client over the protocol does."""
    from mcp import Client

    async def talk():
        async with Client(build(service, name, cap)) as client:
            listed = await client.list_tools()
            results = [await client.call_tool(tool, given) for tool, given in calls]
            return [tool.name for tool in listed.tools], results

    return asyncio.run(talk())


def test_an_agent_looks_prices_and_asks_over_the_protocol(service):
    question = {"sql": COUNT, "epsilon": 0.5}
    names, results = called(
        service,
        [("tables", {}), ("price", question), ("ask", question), ("ask", question), ("budget", {})],
    )
    assert names == ["tables", "price", "ask", "budget", "streams", "stream"]
    assert not any(result.is_error for result in results)
    tables, price, answer, again, budget = (result.structured_content for result in results)
    assert {one["table"] for one in tables["result"]} == {"loads", "people", "visits"}
    assert price["guarantee"][0]["epsilon"] == 0.5
    assert abs(answer["rows"][0][0] - 50) <= 50
    assert answer["error"]["low"][0][0] <= answer["rows"][0][0] <= answer["error"]["high"][0][0]
    assert (answer["reused"], again["reused"]) == (False, True)
    assert again["rows"] == answer["rows"]
    assert budget["left_in_this_conversation"] == 0.5
    assert budget["protections"][0]["share"]["remaining"]["epsilon"] == "1.5"


def test_a_refusal_tells_an_agent_what_to_change(service):
    _, results = called(service, [("ask", {"sql": "SELECT name FROM visits", "epsilon": 0.5})])
    (refused,) = results
    assert refused.is_error
    text = refused.content[0].text
    assert "REF-102" in text
    assert "Now: ask for counts" in text


def test_no_question_goes_beyond_the_cap(service):
    talk = Conversation(service, "ada", "0.5")
    talk.ask(COUNT, 0.3, None)
    with pytest.raises(BudgetError, match="may spend"):
        talk.ask(f"{COUNT} WHERE cost > 2", 0.3, None)
    assert talk.ask(COUNT, 0.3, None)["reused"]
    talk.ask(f"{COUNT} WHERE cost > 2", 0.2, None)
    with pytest.raises(BudgetError):
        talk.ask(f"{COUNT} WHERE cost > 3", 0.001, None)
    assert talk.budget()["left_in_this_conversation"] == 0


def test_planted_a_cap_that_forgets_would_be_seen(service):
    talk = Conversation(service, "ada", "0.5")
    for place in range(3):
        talk.ask(f"{COUNT} WHERE cost > {place}", 0.3, None)
        talk._spent.clear()
    assert talk.budget()["protections"][0]["share"]["remaining"]["epsilon"] == "1.1"


def test_the_share_is_that_of_the_name(service):
    talk = Conversation(service, "bob", "5")
    with pytest.raises(BudgetError):
        talk.ask(COUNT, 1.5, None)


def test_nothing_of_the_data_reaches_an_agent(service):
    talk = Conversation(service, "ada", "1")
    seen = [talk.tables(), talk.budget(), talk.streams(), talk.price(COUNT, 0.1, None)]
    for text in (
        "SELECT name FROM visits",
        "SELECT max(name) FROM visits",
        "SELECT 1/0 FROM visits",
    ):
        with pytest.raises(SecantError) as refused:
            talk.ask(text, 0.1, None)
        seen.append(str(refused.value))
    assert CANARY not in json.dumps(seen, default=str)


def test_a_cap_is_a_number_above_zero(service):
    with pytest.raises(UsageError):
        Conversation(service, "ada", "0")


def test_a_stream_is_not_begun_by_an_agent(tmp_path):
    stream = """
[streams.by_cost]
query = "SELECT cost, count(*) AS n FROM visits GROUP BY cost"
step = 1
start = 0
steps = 4
protection = "rows"
epsilon = 0.5
"""
    service = service_at(tmp_path, POLICY + stream)
    try:
        talk = Conversation(service, "ada", "1")
        assert [one["paid"] for one in talk.streams()] == [False]
        with pytest.raises(BudgetError, match="an agent does not"):
            talk.stream("by_cost")
    finally:
        service.close()
