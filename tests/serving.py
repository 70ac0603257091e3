"""A localhost web server for download tests: it sends prepared answers, faults included."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


@dataclass
class Answer:
    """Answer of the server for one path.

    Parameters
    ----------
    body : bytes
    status : int
    length : int, optional
        Content-Length, if it differs from the length of the body; -1 sends none.
    stall : bool
        Whether to hold the connection after the body until the server ends.
    mute : bool
        Whether to send no byte at all until the server ends.
    """

    body: bytes = b""
    status: int = 200
    length: int | None = None
    stall: bool = False
    mute: bool = False


@dataclass
class Site:
    """Answers by path, and the paths that were requested.

    Parameters
    ----------
    folder : Path, optional
        Folder of files to serve if no answer is set.
    """

    folder: Path | None = None
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    address: str = ""
    ended: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str) -> Answer:
        """Return the answer for a path such as ``/set/file``."""
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]
        if self.folder is not None:
            file = self.folder / path.lstrip("/")
            if ".." not in path and file.is_file():
                return Answer(file.read_bytes())
        return Answer(b"no such file", status=404)


@contextmanager
def serve(site: Site) -> Iterator[Site]:
    """Serve a site on a free port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = site.answer(unquote(self.path))
            if answer.mute:
                site.ended.wait()
                return
            self.send_response(answer.status)
            length = len(answer.body) if answer.length is None else answer.length
            if length >= 0:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()
            if answer.stall:
                site.ended.wait()

        def log_message(self, format: str, *args: object) -> None:
            """Print no log into the test's output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield site
        finally:
            site.ended.set()
            server.shutdown()
            thread.join()
