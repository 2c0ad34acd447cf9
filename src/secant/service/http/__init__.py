"""The HTTP front: an API described by OpenAPI, and the console for browsers.

In: requests. Out: what `secant.service.asking` and `secant.service.views` give, as JSON, Arrow or events. Needs the
extra `serve`. Never here: decisions about budgets, roles or what may be seen.
"""
