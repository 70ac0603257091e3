"""Both worlds: of a hundred releases, how many make a guesser say that somebody is in."""

from __future__ import annotations

IN_COLOUR = "#2a7fd0"


def hundred_svg(count: int, words: str, size: int = 120) -> str:
    """Return ten by ten circles, so many of them filled, as an SVG element.

    Parameters
    ----------
    count : int
        From 0 to 100.
    words : str
        What the picture says, for those who do not see it.
    size : int
        Pixels of each side.
    """
    cells = "".join(
        f'<circle cx="{5 + 10 * (index % 10)}" cy="{5 + 10 * (index // 10)}" r="3.6" '
        f'fill="{IN_COLOUR if index < count else "none"}" '
        f'stroke="{IN_COLOUR if index < count else "#8a93a0"}"/>'
        for index in range(100)
    )
    return (
        f'<svg viewBox="0 0 100 100" width="{size}" height="{size}" role="img" '
        f'aria-label="{words}" xmlns="http://www.w3.org/2000/svg">{cells}</svg>'
    )
