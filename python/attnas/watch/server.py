"""Shows runs to browsers that know a token, over HTTP."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import os
import re
import secrets
import signal
import socket
from pathlib import Path

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from attnas.analysis.digest import BadInput

from .listing import WatchList
from .state import Page, RunWatch

_PATIENCE = 60  # s, with a connection, for each request
_MOST = 200  # connections
_HERE = Path(__file__).parent
_STYLES = (_HERE.parent / "analysis" / "picture.css", _HERE.parent / "analysis" / "page.css",
           _HERE / "watch.css")
_NUMBER = re.compile(r"[0-9]{1,18}")
_ORDER = re.compile(r"newest|mechanism|ask|seed|status|seconds|[0-9]{1,3}")
_RUN_OF_LIST = re.compile(r"/run/(\d{1,18})/(state\.json)?")


def _page(name: str, nonce: str) -> str:
    """A page with its style and scripts, the only ones that its policy allows."""
    def text(*files: Path) -> str:
        return "".join(file.read_text(encoding="utf-8") for file in files)

    page = text(_HERE / f"{name}.html").replace("{{style}}", text(*_STYLES))
    page = page.replace("{{script}}", text(_HERE / "watch_common.js", _HERE / f"{name}.js"))
    return page.replace("{{nonce}}", nonce)


class App:
    """GET and HEAD of / (the page) and of /state.json (what the page shows; `since=VERSION` leaves
    out records that have not changed, `page=OFFSET` with `sort=` and `down=` adds a page of
    evaluations and of a large run leaves out all others, an ETag says whether anything has). Of a
    list of runs / is the page of the list and /runs.json what that shows; run number N of it has
    its page and state at /run/N/ and /run/N/state.json. 403 without the token, 404 for other paths,
    405 for other methods. Requests are answered one after the other."""

    def __init__(self):
        self.watched: RunWatch | WatchList | None = None
        self.token = secrets.token_hex(16)
        self._nonce = secrets.token_hex(16)
        self._pages = {name: _page(name, self._nonce) for name in ("watch", "watch_list")}

    async def __call__(self, scope, receive, send) -> None:
        request = Request(scope)
        try:
            response = self._answer(request)
        except Exception as error:  # pylint: disable=broad-exception-caught
            response = _text(500, f"{error}\n")
        response.headers.update({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
                                 "Referrer-Policy": "no-referrer"})
        if request.method != "GET":  # whatever body is still to come is not waited for
            response.headers["Connection"] = "close"
        await response(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        given = request.query_params.get("token", "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return _text(403, "the address that nas-watch prints has a token\n")
        place = self._place(request.scope["path"])
        if place is None:
            return _text(404, "not here\n")
        if request.method not in ("GET", "HEAD"):
            response = _text(405, "only GET and HEAD\n")
            response.headers["Allow"] = "GET, HEAD"
            return response
        page, run = place
        if page:
            return self._page(
                "watch_list" if isinstance(self.watched, WatchList) and run is None else "watch")
        given = {key: request.query_params.get(key, "")
                 for key in ("since", "page", "sort", "down")}
        page = None
        if _NUMBER.fullmatch(given["page"]):
            sort = given["sort"] if _ORDER.fullmatch(given["sort"]) else "newest"
            page = Page(int(given["page"]), sort, given["down"] != "0")
        since = int(given["since"]) if _NUMBER.fullmatch(given["since"]) else -1
        return self._state(request, run, since, page)

    def _place(self, path: str) -> tuple[bool, int | None] | None:
        """Whether a path is a page, and of which run of the list; None where there is nothing. A
        run is known by its number alone, so that no path of a request is one of a file."""
        listed = isinstance(self.watched, WatchList)
        if path in ("/", "/runs.json" if listed else "/state.json"):
            return path == "/", None
        found = _RUN_OF_LIST.fullmatch(path) if listed and path.isascii() else None
        if found is None or not self.watched.contains(int(found[1])):
            return None
        return found[2] is None, int(found[1])

    def _page(self, name: str) -> Response:
        policy = ("default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
                  "form-action 'none'; frame-ancestors 'none'; "
                  f"style-src 'nonce-{self._nonce}'; script-src 'nonce-{self._nonce}'")
        return Response(self._pages[name], 200, {"Content-Security-Policy": policy}, "text/html")

    def _state(self, request: Request, run: int | None, since: int, page: Page | None) -> Response:
        if run is not None:
            watched = self.watched.open(run)
        else:
            watched = self.watched
            watched.look()
        # With a part of the nonce: another process numbers its versions from the beginning.
        shown = f"-{page.offset}-{page.sort}-{page.down}" if page else ""
        headers = {"ETag": f'"{self._nonce[:8]}-{watched.version}{shown}"'}
        if request.headers.get("If-None-Match") == headers["ETag"]:
            return Response(None, 304, headers)
        listed = isinstance(watched, WatchList)
        state = watched.state() if listed else watched.state(since, page)
        # Names of files may be no UTF-8.
        text = json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        return Response(text, 200, headers, "application/json")


def _text(status: int, text: str) -> Response:
    return Response(text, status, media_type="text/plain")


class _Connection(H11Protocol):
    """One that does not ask whole, and take its whole answer, within a while is ended; so is one
    too many. What was cut so is shorter than its Content-Length."""

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self._ending = self.loop.call_later(_PATIENCE, transport.abort)
        if len(self.connections) > _MOST:
            transport.abort()

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle and not self.cycle.response_complete:  # it waits for us
            self._ending.cancel()

    def on_response_complete(self) -> None:
        self._ending = self.loop.call_later(_PATIENCE, self.transport.abort)
        super().on_response_complete()

    def connection_lost(self, exc) -> None:
        self._ending.cancel()
        super().connection_lost(exc)


class _Uvicorn(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        """Those of Server.serve() count."""


class Server:
    """Listens, and heeds signals, from the beginning; answers from serve() on."""

    def __init__(self, host: str, port: int):
        """@param port  0: any that is free. Raises BadInput where the host is no address of this
        machine, or the port is in use."""
        self._app = App()
        self._server = _Uvicorn(uvicorn.Config(self._app, http=_Connection, ws="none",
                                               loop="asyncio", lifespan="off", log_config=None,
                                               access_log=False, server_header=False,
                                               timeout_keep_alive=_PATIENCE))
        self._socket = _listening(host, port)
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if name != signal.SIGHUP or signal.getsignal(name) != signal.SIG_IGN:  # as nohup has it
                signal.signal(name, self._stop)

    def _stop(self, *_) -> None:
        self._server.should_exit = True

    @property
    def url(self) -> str:
        """Where the page is, with the token: "http://127.0.0.1:41234/?token=..."."""
        host, port = self._socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={self._app.token}"

    def serve(self, watched: RunWatch | WatchList) -> None:
        """Answers until SIGINT, SIGTERM or SIGHUP, also one that came since this was made."""
        self._app.watched = watched
        asyncio.run(self._server.serve([self._socket]))


def _address(host: str) -> str:
    """An address, or that of a name which means this machine alone: what else a name means may
    change."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            found = socket.getaddrinfo(host, None, family, socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            continue
        for *_, (address, *_) in found:
            if ipaddress.ip_address(address).is_loopback:
                return address
    raise BadInput(f"command line: --host {host}, must be an address of this machine, "
                   "such as 127.0.0.1 or ::1, or localhost")


def _listening(host: str, port: int) -> socket.socket:
    address = _address(host)
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        made.listen()
    except OSError as error:
        made.close()
        raise BadInput(
            f"command line: cannot listen on {host} port {port}: {os.strerror(error.errno)}"
            + ("; --port 0 takes one that is free" if port else "")) from None
    return made
