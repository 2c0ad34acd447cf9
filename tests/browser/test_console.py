"""The console in a real browser: price first, then the answer with its ends, and nothing breaks out."""

import pytest
from clinic_console import CANARY, HOSTILE, PASSWORD

COUNT = "SELECT ward, count(*) AS n FROM visits GROUP BY ward"


def left(page):
    return float(page.get_by_role("meter").first.get_attribute("aria-valuenow"))


def test_price_then_answer_then_the_gauge_falls(visiting):
    with visiting("ada") as visit:
        page = visit.page
        visit.write(COUNT)
        page.locator(".errors li", has_text="number of rows").wait_for()
        assert "people ε 0.2" in page.locator(".badge").first.inner_text()
        page.get_by_role("button", name="Ask").wait_for()
        before = left(page)
        assert before == 2  # the analyst's own share, nothing of it spent by looking
        page.get_by_role("button", name="Ask").click()
        page.get_by_role("heading", name="Promise").wait_for()
        page.wait_for_function(
            "was => Number(document.querySelector('.meter').getAttribute('aria-valuenow')) < was",
            arg=before,
        )
        assert left(page) == pytest.approx(1.8)
        assert page.locator(".answer tbody tr").count() == 4
        assert page.locator(".answer .whisker").count() == 12
        low, high = page.locator(".ends").first.inner_text().split("…")
        assert float(low.replace(",", "")) < float(high.replace(",", ""))

        page.get_by_role("button", name="Ask").click()
        page.get_by_text("costs nothing").wait_for()
        assert left(page) == pytest.approx(1.8)

        page.get_by_text("Why this is private").click()
        page.locator(".rule", has_text="COUNT").first.click()
        page.locator(".proof dd").first.wait_for()
        assert visit.wrong == []


def test_a_refusal_says_where_and_what_now(visiting):
    with visiting("ada") as visit:
        visit.write("SELECT name FROM visits")
        told = visit.page.get_by_role("alert").first
        told.wait_for()
        assert "REF-" in told.inner_text()
        assert "Now:" in told.inner_text()
        assert told.locator("mark").inner_text() == "visits"
        visit.write("SELECT count(*) FROM nowhere")
        visit.page.get_by_role("alert").get_by_text("nowhere").first.wait_for()
        assert visit.wrong == []


def test_names_are_completed_by_keyboard_alone(visiting):
    with visiting("ada") as visit:
        page = visit.page
        area = page.get_by_label("Question in SQL")
        area.fill("")
        area.press_sequentially("SELECT count(*) FROM vis")
        page.get_by_role("option", name="visits").wait_for()
        assert (
            page.locator(f"#{area.get_attribute('aria-activedescendant')}")
            .inner_text()
            .startswith("visits")
        )
        area.press("Tab")
        assert area.input_value() == "SELECT count(*) FROM visits"
        area.press("Control+Enter")
        page.get_by_role("heading", name="Promise").wait_for()
        assert page.locator("#status").inner_text().startswith("answered")


def test_epsilon_follows_from_a_wanted_error(visiting):
    with visiting("ada") as visit:
        page = visit.page
        visit.write("SELECT count(*) AS n FROM visits")
        page.get_by_label("by accuracy").check()
        page.get_by_label("Error").fill("400")
        page.locator(".badge", has_text="people ε").first.wait_for()
        page.wait_for_function(
            "() => !document.querySelector('.badge').innerText.includes('ε 0.2')"
        )
        assert visit.wrong == []


def test_history_tells_each_role_what_it_may_see(visiting):
    text = "SELECT count(*) AS mine FROM visits WHERE day > DATE '2025-01-03'"
    with visiting("olga") as visit:
        visit.write(text)
        visit.page.get_by_role("button", name="Ask").click()
        visit.page.get_by_role("heading", name="Promise").wait_for()
    with visiting("ada") as visit:
        visit.go("history")
        visit.page.get_by_role("heading", name="Your questions").wait_for()
        visit.page.wait_for_selector("tbody tr, .quiet")
        assert text not in visit.page.content()
        visit.go("people")
        visit.page.get_by_role("heading", name="Your password").wait_for()
        assert visit.page.get_by_role("heading", name="Users").count() == 0
    with visiting("otto") as visit:
        assert visit.page.get_by_role("button", name="Ask").is_disabled()
        visit.go("history")
        visit.page.get_by_role("link", name=text).wait_for()
        visit.go("people")
        visit.page.get_by_role("heading", name="Log", exact=True).wait_for()
        visit.page.get_by_role("cell", name="otto").first.wait_for()
        assert visit.page.get_by_role("button", name="Remove").count() == 0
        assert visit.wrong == []


def test_an_owner_adds_a_user_who_can_log_in(visiting):
    with visiting("olga") as visit:
        page = visit.page
        visit.go("people")
        page.get_by_label("Name").fill("eve")
        page.get_by_label("Your password, to add").fill(PASSWORD)
        page.get_by_role("button", name="Add").click()
        made = page.locator(".secret code").inner_text()
        page.get_by_role("cell", name="eve").first.wait_for()
        assert visit.wrong == []
    with visiting() as visit:
        visit.log_in("eve", made)
        visit.page.get_by_text("eve (analyst)").wait_for()
        visit.page.get_by_role("button", name="Log out").click()
        visit.page.get_by_role("button", name="Log in").wait_for()


def test_on_a_phone_nothing_is_scrolled_sideways(visiting):
    with visiting("olga") as visit:
        page = visit.page
        page.set_viewport_size({"width": 390, "height": 844})
        visit.write(COUNT)
        page.get_by_role("button", name="Ask").click()
        page.get_by_role("heading", name="Promise").wait_for()
        name, number = page.locator(".gauge-head").first.locator("strong, span").all()
        apart = number.bounding_box()["x"] - name.bounding_box()["x"] - name.bounding_box()["width"]
        assert apart >= 8
        assert "people ε" in page.locator(".gauge-head").first.text_content()
        page.locator(".gauge-head strong").first.evaluate(
            "e => { e.textContent = 'x'.repeat(300) }"
        )
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        visit.go("history")
        page.get_by_role("cell", name="people ε").first.wait_for()
        price = page.get_by_role("cell", name="people ε").first.bounding_box()
        assert price["x"] + price["width"] <= 390
        for place, title in (("history", "All questions"), ("people", "Log")):
            visit.go(place)
            page.get_by_role("region", name=title).wait_for()
            wide = "all => all.filter(e => e.scrollWidth > e.clientWidth).length"
            assert page.locator(".scroll").evaluate_all(wide) == 0
        assert visit.wrong == []


def test_all_that_a_user_is_logged_in_by_ends_at_a_click(visiting):
    with visiting("otto") as visit, visiting("olga") as owner:
        page = owner.page
        owner.go("people")
        line = page.get_by_role("region", name="Users").get_by_role("row", name="otto")
        line.get_by_role("button", name="Revoke all").click()
        page.get_by_text("sessions and tokens of otto have ended").wait_for()
        visit.page.reload()
        visit.page.get_by_role("button", name="Log in").wait_for()
        assert owner.wrong == []


def test_a_token_needs_the_password(visiting):
    with visiting("ada") as visit:
        page = visit.page
        visit.go("people")
        page.get_by_label("What it is for").fill("dashboard")
        page.get_by_label("Your password", exact=True).fill("not the password")
        page.get_by_role("button", name="Make a token").click()
        page.get_by_role("alert").get_by_text("AUT-001").wait_for()
        page.get_by_label("Your password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Make a token").click()
        assert page.locator(".secret code").inner_text().startswith("secant_")
        assert visit.wrong == []


def test_a_wrong_password_is_refused_alike_for_everybody(visiting):
    told = []
    for name, password in (("ada", "wrong wrong wrong"), ("nobody", PASSWORD)):
        with visiting() as visit:
            visit.log_in(name, password)
            alert = visit.page.get_by_role("alert")
            alert.wait_for()
            told.append(alert.inner_text())
    assert told[0] == told[1]


def test_a_stream_is_drawn_with_its_band(visiting):
    with visiting("olga") as visit:
        page = visit.page
        visit.go("streams")
        page.get_by_role("button", name="Begin and pay").click()
        page.locator("polygon.band, [role=alert]").first.wait_for()
        assert page.get_by_role("alert").all_inner_texts() == []
        assert page.locator("polyline.line").get_attribute("points").count(",") == 20
        assert visit.wrong == []


def test_what_is_public_is_marked(visiting):
    with visiting("ada") as visit:
        visit.go("tables")
        card = visit.page.locator(".public")
        card.wait_for()
        assert "wards" in card.inner_text()
        assert "shown as it is" in card.inner_text()


def test_values_and_names_are_never_markup(visiting):
    with visiting("olga") as visit:
        page = visit.page
        visit.write(f'SELECT ward, count(*) AS "{HOSTILE}" FROM visits GROUP BY ward')
        page.locator(".errors li").first.wait_for()
        page.get_by_role("button", name="Ask").click()
        page.get_by_role("heading", name="Promise").wait_for()
        assert page.get_by_role("cell", name=HOSTILE).count() >= 1
        assert page.locator("main img").count() == 0
        visit.go("history")
        page.get_by_role("heading", name="All questions").wait_for()
        assert page.locator("main img").count() == 0
        assert visit.wrong == []


def test_no_page_and_no_response_carries_a_value_of_the_data(visiting):
    with visiting("olga") as visit:
        for text in (
            "SELECT name FROM visits",
            "SELECT name, count(*) FROM visits GROUP BY name",
            "SELECT max(name) FROM visits",
        ):
            visit.write(text)
            visit.page.get_by_role("alert").first.wait_for()
        for place in ("history", "streams", "tables", "people"):
            visit.go(place)
            visit.page.get_by_role("heading").first.wait_for()
            visit.page.wait_for_load_state("networkidle")
            assert CANARY not in visit.page.content()
        bodies = [r.text() for r in visit.received if r.status != 204]
        assert len(bodies) > 8
        assert not any(CANARY in body for body in bodies)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(visiting, scheme):
    from axe_playwright_python.sync_playwright import Axe

    found = {}
    with visiting(color_scheme=scheme) as visit:
        visit.page.goto(visit.address)
        visit.page.get_by_role("button", name="Log in").wait_for()
        found["login"] = Axe().run(visit.page)
    with visiting("olga", color_scheme=scheme) as visit:
        visit.page.get_by_role("button", name="Ask").click()
        visit.page.get_by_role("heading", name="Promise").wait_for()
        found["ask"] = Axe().run(visit.page)
        for place in ("history", "streams", "tables", "people"):
            visit.go(place)
            visit.page.get_by_role("heading", level=2).first.wait_for()
            visit.page.wait_for_load_state("networkidle")
            found[place] = Axe().run(visit.page)
    broken = [
        f"{place}: {rule['id']} {[node['html'] for node in rule['nodes']][:3]}"
        for place, results in found.items()
        for rule in results.response["violations"]
    ]
    assert broken == []
