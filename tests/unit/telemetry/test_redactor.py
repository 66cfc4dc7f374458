"""No form of a known secret comes through."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hermes.telemetry import Redactor
from hermes.telemetry.redactor import MASK, SHORTEST


def texts_without(*categories: str) -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=("Cs", *categories), exclude_characters="[]"), max_size=20)


SECRETS = texts_without().filter(lambda text: len(text) >= SHORTEST and text not in MASK)

FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "percent": lambda text: quote(text, safe=""),
    "percent, slashes left": quote,
    "percent, lower case": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "percent, every byte": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "form": quote_plus,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "repr": lambda text: repr(text)[1:-1],
}


@pytest.mark.parametrize("form", FORMS)
@given(secret=SECRETS, before=texts_without(), after=texts_without())
def test_no_written_form_of_a_secret_survives(form: str, secret: str, before: str, after: str) -> None:
    written = FORMS[form](secret)
    assume(written not in before + MASK + after)
    assert written not in Redactor([secret]).clean(before + written + after)


@given(secret=SECRETS, before=st.binary(max_size=10), after=st.binary(max_size=10), is_url_safe=st.booleans())
def test_no_base64_gives_a_secret_back_wherever_it_stood(
    secret: str, before: bytes, after: bytes, *, is_url_safe: bool
) -> None:
    encode = base64.urlsafe_b64encode if is_url_safe else base64.b64encode
    decode = base64.urlsafe_b64decode if is_url_safe else base64.b64decode
    raw = secret.encode()
    assume(raw not in before + after)
    cleaned = Redactor([secret]).clean(encode(before + raw + after).decode())
    assert MASK in cleaned
    for shift in range(4):
        for piece in cleaned.split(MASK):
            whole = "A" * shift + piece.replace("=", "")
            assert raw not in decode(whole + "A" * (-len(whole) % 4))


@given(secret=SECRETS, text=texts_without())
def test_a_text_without_the_secret_is_left_as_it_is(secret: str, text: str) -> None:
    assume(all(form(secret) not in text for form in FORMS.values()) and len(text) < SHORTEST)
    assert Redactor([secret]).clean(text) == text


def test_a_secret_that_begins_with_another_is_taken_out_whole() -> None:
    assert Redactor(["hunter", "hunter-and-more"]).clean("it is hunter-and-more.") == f"it is {MASK}."


def test_a_short_secret_is_not_searched() -> None:
    short, long = "x" * (SHORTEST - 1), "y" * SHORTEST
    assert Redactor([short, long]).clean(f"{short} {long}") == f"{short} {MASK}"


def test_a_secret_learned_later_is_searched_from_then_on() -> None:
    redactor = Redactor()
    assert redactor.clean("hunter22 hunter33") == "hunter22 hunter33"
    redactor.learn(["hunter22"])
    assert redactor.clean("hunter22 hunter33") == f"{MASK} hunter33"
    redactor.learn(["hunter33"])
    assert redactor.clean("hunter22 hunter33") == f"{MASK} {MASK}"


def test_a_key_of_many_lines_is_found_when_it_is_indented() -> None:
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB", "-----END KEY-----"]
    cleaned = Redactor(["\n".join(lines)]).clean("\n    ".join(lines))
    assert "MII" not in cleaned
    assert "AQEF" not in cleaned


class Unprintable:
    """A stranger's type whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def test_a_value_is_cleaned_in_its_texts_keys_and_numbers_at_any_depth() -> None:
    value: dict[str, object] = {
        "hunter22": 1,
        "list": ["hunter22", ("x", b"hunter22")],
        "number": 12345678,
        "real": float("nan"),
        "odd": Unprintable(),
        "kept": {"a": 1, "b": True, "c": None, "d": 1.5},
    }
    value["cycle"] = value
    cleaned = Redactor(["hunter22", "12345678"]).clean_value(value)
    written = json.dumps(cleaned, allow_nan=False)
    assert "hunter22" not in written
    assert "12345678" not in written
    assert isinstance(cleaned, dict)
    assert cleaned["kept"] == value["kept"]
    assert "Unprintable" in cleaned["odd"]
