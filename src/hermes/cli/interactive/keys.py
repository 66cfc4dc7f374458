"""What the keys do."""

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from hermes.cli.interactive.composing import Composing
from hermes.cli.interactive.screen import Screen
from hermes.domain.clock import Clock
from hermes.domain.records import dataclass


@dataclass(frozen=True, slots=True)
class Ways:
    """What a key can bring about. `stop` is for Ctrl-C, `leave` for Ctrl-D."""

    submit: Callable[[str], None]
    stop: Callable[[], None]
    leave: Callable[[], None]


def bindings(screen: Screen, buffer: Buffer, composing: Composing, ways: Ways, clock: Clock) -> KeyBindings:
    """Bind the keys of the chat; those of editing come from the library."""
    keys = KeyBindings()
    _bind_input(keys, screen, buffer, composing, ways, clock)
    _bind_menu(keys, screen, clock)
    return keys


def _bind_input(
    keys: KeyBindings, screen: Screen, buffer: Buffer, composing: Composing, ways: Ways, clock: Clock
) -> None:
    is_choosing = Condition(lambda: screen.menu is not None and not screen.menu.is_writing)

    @keys.add("enter", filter=~is_choosing)
    def _enter(_event: KeyPressEvent) -> None:
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.apply_completion(state.current_completion)
            return
        if buffer.document.current_line_before_cursor.endswith("\\") and not buffer.document.current_line_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        if screen.menu is not None:
            if screen.menu.write(buffer.text, now=clock.monotonic()):
                buffer.reset()
            return
        ways.submit(buffer.text)

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _newline(_event: KeyPressEvent) -> None:
        buffer.insert_text("\n")

    @keys.add(Keys.BracketedPaste, filter=~is_choosing)
    def _paste(event: KeyPressEvent) -> None:
        buffer.insert_text(composing.paste(event.data))

    @keys.add("c-c")
    def _stop(_event: KeyPressEvent) -> None:
        ways.stop()

    @keys.add("c-d")
    def _leave(_event: KeyPressEvent) -> None:
        if buffer.text:
            buffer.delete()
        else:
            ways.leave()

    @keys.add("c-l")
    def _redraw(event: KeyPressEvent) -> None:
        event.app.renderer.clear()


def _bind_menu(keys: KeyBindings, screen: Screen, clock: Clock) -> None:
    is_choosing = Condition(lambda: screen.menu is not None and not screen.menu.is_writing)
    is_asked = Condition(lambda: screen.menu is not None)

    @keys.add("up", filter=is_choosing, eager=True)
    @keys.add("down", filter=is_choosing, eager=True)
    def _move(event: KeyPressEvent) -> None:
        if screen.menu is not None:
            screen.menu.move(-1 if event.key_sequence[0].key == Keys.Up else 1)

    @keys.add("enter", filter=is_choosing, eager=True)
    def _take(_event: KeyPressEvent) -> None:
        if screen.menu is not None:
            screen.menu.take(now=clock.monotonic())

    @keys.add("escape", filter=is_asked)
    def _back(_event: KeyPressEvent) -> None:
        if screen.menu is not None:
            screen.menu.back()

    @keys.add(Keys.Any, filter=is_choosing)
    def _press(event: KeyPressEvent) -> None:
        if screen.menu is not None:
            screen.menu.press(event.data, now=clock.monotonic())

    @keys.add(Keys.BracketedPaste, filter=is_choosing)
    def _ignore(_event: KeyPressEvent) -> None:
        return
