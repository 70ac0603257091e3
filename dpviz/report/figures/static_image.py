"""A Plotly figure that carries a still picture, for pages that run no script."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

PLOTLY, IMAGE = "application/vnd.plotly.v1+json", "image/svg+xml"


class StaticImage(go.Figure):  # type: ignore[misc]
    """A figure with a picture of its answer, drawn without a script, a browser or a host."""

    _still: Callable[[], Any] = staticmethod(lambda: None)

    @classmethod
    def of(cls, figure: go.Figure, still: Callable[[], Any]) -> StaticImage:
        """Return the same figure as one of these: to make it anew checks all of it once more."""
        figure.__class__ = cls
        assert isinstance(figure, cls)
        figure._still = still
        return figure

    def _ipython_display_(self) -> None:
        """Show it as plotly does, unless it shows its data: then what is below is shown."""
        if "plotly_mimetype" in str(pio.renderers.default):
            raise NotImplementedError
        super()._ipython_display_()

    def _repr_mimebundle_(self, *given: Any, **more: Any) -> dict[str, Any]:
        """Return Plotly's data and the picture; no script, which static pages leave out."""
        bundle = dict(super()._repr_mimebundle_(*given, **more) or {})
        # a front end that knows Plotly's data needs no script; a page without one shows the picture
        if PLOTLY in bundle:
            bundle.pop("text/html", None)
        picture = self._still() if find_spec("matplotlib") else None
        if picture is None:
            return bundle
        from dpviz.report.print import inline

        return bundle | {IMAGE: inline(picture)}
