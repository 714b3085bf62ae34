"""The HTTP server: `hardsave serve`. Needs the extra `server`, from `app.py` on."""
