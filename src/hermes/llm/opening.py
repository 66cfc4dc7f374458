"""Opens the model that was chosen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from hermes import __version__
from hermes.config.settings import Settings
from hermes.domain.clock import Clock
from hermes.domain.errors import Unavailable
from hermes.domain.event import JSON
from hermes.domain.model import Provider
from hermes.llm.choice import Choice
from hermes.llm.provider import Habits, Model, Remote
from hermes.llm.wire.failing import Place, failure
from hermes.llm.wire.format import FORMATS, Format
from hermes.net.dial import Dial, dial
from hermes.net.http import Http, head
from hermes.net.response import Deadlines


@asynccontextmanager
async def open_provider(choice: Choice, settings: Settings, clock: Clock, dial: Dial = dial) -> AsyncIterator[Provider]:
    """Open a model with connections of its own, and close them in the end.

    `dial` reaches whatever the owner configured, also on this machine.
    """
    async with Http(dial).opened() as http:
        yield provider(choice, settings, clock, http)


def provider(choice: Choice, settings: Settings, clock: Clock, http: Http) -> Provider:
    """Return a model that shares the connections of `http`."""
    format_, url = _format(choice), _url(choice)
    place = Place(choice.vendor.name, choice.model, url, choice.key.reveal(), choice.key_from)
    model = Model(choice.name, choice.window, place, choice.vendor.quirks.reads_tags, _habits(settings))
    headers = {
        "User-Agent": f"hermes/{__version__}",
        "Accept": "text/event-stream, application/json",
        "Content-Type": "application/json",
        **format_.headers(choice.key.reveal()),
    }
    return Remote(model, format_, http, head("POST", url, headers), clock, deadlines(settings))


def _habits(settings: Settings) -> Habits | None:
    model = settings.model
    extra: dict[str, JSON] = {"reasoning_effort": model.reasoning_effort} if model.reasoning_effort else {}
    habits = Habits(model.max_tokens, model.temperature, extra)
    return None if habits == Habits() else habits


def deadlines(settings: Settings) -> Deadlines:
    """Return how long one call may wait for what."""
    model = settings.model
    return Deadlines(
        model.connect_timeout.total_seconds(),
        model.first_timeout.total_seconds(),
        model.idle_timeout.total_seconds(),
        model.timeout.total_seconds(),
    )


async def offered(choice: Choice, clock: Clock, http: Http) -> list[str]:
    """Ask the vendor for the names of its models. Raises what a call raises."""
    format_ = _format(choice)
    url = _url(choice).removesuffix(format_.path.removeprefix("/v1")) + "/models"
    prepared = head("GET", url, {"User-Agent": f"hermes/{__version__}", **format_.headers(choice.key.reveal())})
    with await http.send(prepared, deadlines=Deadlines(10, 20, 20, 60)) as response:
        body = await response.read_all(16 * 1024 * 1024)
        if response.status != 200:
            place = Place(choice.vendor.name, choice.model, url, choice.key.reveal(), choice.key_from)
            raise failure(place, response.status, response.headers, body, clock.now())
    try:
        listed = msgspec.json.decode(body)["data"]
        return sorted(str(one["id"]) for one in listed)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise Unavailable(f"{url!r} does not answer with a list of models") from error


def _format(choice: Choice) -> Format:
    return FORMATS[choice.wire](choice.model, choice.vendor.quirks)


def _url(choice: Choice) -> str:
    base, path = choice.base_url, _format(choice).path
    # One wire has the version in its path; people write it into the base as well.
    return base.removesuffix("/v1") + path if path.startswith("/v1/") else base + path
