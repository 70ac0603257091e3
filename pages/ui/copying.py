"""A command or a link in a separate box, with a button that copies it.

Streamlit's own code box makes the browser load and run a highlighter of 1.5 MB on every page that
shows a command. The box of this file shows a command in one colour.
"""

from __future__ import annotations

import html

import streamlit as st

STYLE = """<style>
.dp-copy { position: relative; }
.dp-copy pre {
  margin: 0; padding: .8rem 4.6rem .8rem .9rem; border-radius: .5rem; font-size: 15px;
  white-space: pre-wrap; overflow-wrap: anywhere;
  background: color-mix(in srgb, currentColor 6%, transparent);
}
.dp-copy pre code { font-size: inherit; background: none; padding: 0; color: inherit; }
.dp-copy .dp-prose { font: inherit; font-size: 1rem; }
.dp-copy span { display: inline-block; max-width: 100%; } /* no line ends within an option's name */
.dp-copy button {
  all: unset; position: absolute; top: .5rem; right: .5rem; padding: .1rem .5rem; cursor: pointer;
  font-size: 15px; border-radius: .4rem; border: 1px solid currentColor;
}
.dp-copy button:hover { background: color-mix(in srgb, currentColor 12%, transparent); }
@media print { .dp-copy button { display: none; } .dp-copy pre { padding-right: .9rem; } }
</style>"""


def copyable(text: str, *, prose: bool = False) -> None:
    """Show a text unchanged, for copying.

    Parameters
    ----------
    text : str
        Plain text; HTML in the text is shown, not interpreted.
    prose : bool
        Whether the text consists of sentences instead of a command.
    """
    # Break lines only between words, never within the name of an option.
    lines = (
        [f"<span>{html.escape(word)}</span>" for word in line.split(" ")]
        for line in text.split("\n")
    )
    words = "\n".join(" ".join(line) for line in lines)
    st.html(
        f'<div class="dp-copy"><pre{" class=dp-prose" * prose}><code'
        f"{' class=dp-prose' * prose}>{words}</code></pre>"
        '<button type="button" aria-live="polite">copy</button></div>'
    )
