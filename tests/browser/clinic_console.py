"""The clinic that the browser tests visit, and a visit to it."""

PASSWORD = "correct horse battery staple"
CANARY = "CANARY-51c9e"
HOSTILE = "<img src=x onerror=alert(1)>"
POLICY = f"""
[database]
source = "duckdb:clinic.duckdb"
public = ["wards"]
[tables.visits.columns]
day = {{ range = ["2025-01-01", "2025-01-20"], step = "1 day" }}
cost = {{ range = [0, 100] }}
ward = {{ values = ["Eye", "Heart", "{HOSTILE}"] }}
[protections.people]
kind = "unit"
unit = "visits.person"
epsilon = 20
delta = 1e-6
limits = {{ visits = 4 }}
[protections.people.analysts]
ada = {{ epsilon = 2 }}
[streams.visits_by_day]
query = "SELECT day, count(*) AS n FROM visits GROUP BY day"
step = "1 day"
start = "2025-01-01"
steps = 20
protection = "people"
epsilon = 1
append_only = true
"""


class Visit:
    """A page of somebody who has logged in, and all that went wrong on it."""

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.wrong, self.received = [], []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", self._heard)
        page.on("response", self._came)

    def _heard(self, message):
        if "Content Security Policy" in message.text:
            self.wrong.append(message.text)

    def _came(self, response):
        if response.request.resource_type in ("fetch", "document"):
            self.received.append(response)

    def go(self, place):
        self.page.goto(f"{self.address}/#/{place}")

    def log_in(self, name, password=PASSWORD):
        self.page.goto(self.address)
        self.page.get_by_label("User").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()

    def write(self, text):
        self.page.get_by_label("Question in SQL").fill(text)
