"""The console: pages for browsers, over the same service and the same API.

Pages load nothing from elsewhere and run scripts of `static` only; what changes something goes through the API, with
the mark of the session in the header X-CSRF-Token.
"""
