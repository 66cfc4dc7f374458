"""Where things stand at the bottom of the screen: what goes on, the question, the input, completions, the status."""

from collections.abc import Callable

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import Output

from hermes.cli.interactive.screen import Screen, style_of
from hermes.cli.screen import clean, cut

_MOST_INPUT_LINES = 10
_MOST_COMPLETIONS = 8


def build(
    screen: Screen, buffer: Buffer, keys: KeyBindings, output: Output, status: Callable[[int], StyleAndTextTuples]
) -> Application[None]:
    """Put the bottom of the screen together."""
    live = Window(FormattedTextControl(screen.live), dont_extend_height=True)
    entry = Window(
        BufferControl(buffer, input_processors=[BeforeInput(lambda: _prompt(screen))]),
        height=lambda: Dimension(min=1, max=_most_lines(screen)),
        wrap_lines=True,
        dont_extend_height=True,
        get_line_prefix=lambda number, wrapped: [] if number == 0 and not wrapped else [("", "  ")],
    )
    menu = Window(FormattedTextControl(lambda: _menu(screen)), dont_extend_height=True, wrap_lines=True)
    bottom = Window(FormattedTextControl(lambda: status(screen.width)), height=1)
    return Application(
        layout=Layout(
            HSplit(
                [
                    ConditionalContainer(live, Condition(lambda: bool(screen.live()))),
                    ConditionalContainer(menu, Condition(lambda: screen.menu is not None)),
                    entry,
                    CompletionsMenu(max_height=_MOST_COMPLETIONS),
                    bottom,
                ]
            ),
            focused_element=entry,
        ),
        key_bindings=keys,
        style=style_of(screen.look),
        output=output,
        full_screen=False,
        erase_when_done=True,
        mouse_support=False,
    )


def _most_lines(screen: Screen) -> int:
    return max(1, min(_MOST_INPUT_LINES, screen.rows // 3))


def _prompt(screen: Screen) -> StyleAndTextTuples:
    skin = screen.look.worn
    if screen.menu is not None and screen.menu.is_writing:
        return [("class:accent", "your answer ")]
    return [("class:accent", f"{skin.working if screen.working.is_on else skin.prompt} ")]


def _menu(screen: Screen) -> StyleAndTextTuples:
    menu = screen.menu
    if menu is None:
        return []
    shown: StyleAndTextTuples = [("", f"{menu.title}\n")] if menu.title else []
    for number, option in enumerate(menu.options):
        is_chosen = number == menu.chosen
        key = f" [{option.key}]" if option.key else ""
        line = cut(f"{'▸' if is_chosen else ' '} {number + 1}. {clean(option.label)}", screen.width - len(key)) + key
        shown.append(("class:chosen" if is_chosen else "", f"{line}\n"))
    hint = "Enter answers, Esc goes back" if menu.is_writing else "↑↓ and Enter, or a key; Esc is no answer"
    return [*shown, ("class:quiet", cut(hint, screen.width))]
