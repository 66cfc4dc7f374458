"""Layer 13: the only place where objects are wired together.

`open_app` gives everything a face needs; `App.serve` works until it is told to stop. Whoever opens closes.
"""

from hermes.app.core import HOUSEKEEPING, App, Extras, open_app, place_of

__all__ = ["HOUSEKEEPING", "App", "Extras", "open_app", "place_of"]
