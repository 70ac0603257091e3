"""A Plotly figure that carries a static image, for pages that run no script."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

PLOTLY, IMAGE = "application/vnd.plotly.v1+json", "image/svg+xml"


class StaticImage(go.Figure):  # type: ignore[misc]
    """A figure with a static image of its answer, drawn without script, browser or server."""

    _still: Callable[[], Any] = staticmethod(lambda: None)

    @classmethod
    def of(cls, figure: go.Figure, still: Callable[[], Any]) -> StaticImage:
        """Turn a figure into a `StaticImage` in place, because a copy would be validated again."""
        figure.__class__ = cls
        assert isinstance(figure, cls)
        figure._still = still
        return figure

    def _ipython_display_(self) -> None:
        """Show the figure as Plotly does, or by its MIME bundle if the renderer uses one."""
        if "plotly_mimetype" in str(pio.renderers.default):
            raise NotImplementedError
        super()._ipython_display_()

    def _repr_mimebundle_(self, *args: Any, **more: Any) -> dict[str, Any]:
        """Return Plotly's data and the image, without the script that static pages drop."""
        bundle = dict(super()._repr_mimebundle_(*args, **more) or {})
        # Programs that know Plotly's data need no script. Pages without scripts show the image.
        if PLOTLY in bundle:
            bundle.pop("text/html", None)
        picture = self._still() if find_spec("matplotlib") else None
        if picture is None:
            return bundle
        from dpviz.report.print import inline

        return bundle | {IMAGE: inline(picture)}
