"""Public results as people read them: text on a screen, HTML in a notebook, pictures. Nothing private arrives here."""
