"""The model that is meant is the model that is asked."""

from pathlib import Path

import pytest

from hermes.config import load
from hermes.config.settings import secrets
from hermes.domain.errors import HermesError, Misconfigured, NotFound
from hermes.llm.catalogue.models import facts, table
from hermes.llm.catalogue.vendors import VENDORS
from hermes.llm.choice import Choice, choose
from hermes.llm.wire.failing import Place
from hermes.net.http import head

OPENAI, ANTHROPIC, OPENROUTER = ({f"{n}_API_KEY": f"sk-{n}"} for n in ("OPENAI", "ANTHROPIC", "OPENROUTER"))
PROXY = {"OPENAI_BASE_URL": "http://127.0.0.1:4000/v1"}


def chosen(home: Path, environ: dict[str, str], name: str | None = None, *, config: str = "") -> Choice:
    (home / "config.yaml").write_text(config)
    return choose(load(home=home, environ=environ), name)


@pytest.mark.parametrize(
    ("environ", "name", "expected", "url", "key"),
    [
        (OPENAI, None, "openai/gpt-5.4-mini", "https://api.openai.com/v1", "sk-OPENAI"),
        (ANTHROPIC, None, "anthropic/claude-sonnet-5-5", "https://api.anthropic.com", "sk-ANTHROPIC"),
        (OPENROUTER, None, "openrouter/anthropic/claude-sonnet-5.5", "https://openrouter.ai/api/v1", "sk-OPENROUTER"),
        (OPENAI | PROXY, None, "openai/gpt-5.4-mini", "http://127.0.0.1:4000/v1", "sk-OPENAI"),
        (OPENAI | PROXY, "qwen3", "openai/qwen3", "http://127.0.0.1:4000/v1", "sk-OPENAI"),
        (OPENAI | PROXY, "anthropic/x", "openai/anthropic/x", "http://127.0.0.1:4000/v1", "sk-OPENAI"),
        (OPENROUTER | OPENAI | PROXY, None, "openai/gpt-5.4-mini", "http://127.0.0.1:4000/v1", "sk-OPENAI"),
        (OPENROUTER, "anthropic/x", "openrouter/anthropic/x", "https://openrouter.ai/api/v1", "sk-OPENROUTER"),
        (OPENROUTER, "openrouter/qwen/q", "openrouter/qwen/q", "https://openrouter.ai/api/v1", "sk-OPENROUTER"),
        (OPENROUTER | ANTHROPIC, "anthropic/x", "anthropic/x", "https://api.anthropic.com", "sk-ANTHROPIC"),
        (OPENROUTER | ANTHROPIC, "qwen/x", "openrouter/qwen/x", "https://openrouter.ai/api/v1", "sk-OPENROUTER"),
        (ANTHROPIC, "claude-opus-5-5", "anthropic/claude-opus-5-5", "https://api.anthropic.com", "sk-ANTHROPIC"),
        (ANTHROPIC, "ollama/qwen3:8b", "ollama/qwen3:8b", "http://127.0.0.1:11434/v1", ""),
        ({"OLLAMA": "x"}, "lm-studio/a/b", "lmstudio/a/b", "http://127.0.0.1:1234/v1", ""),
    ],
)
def test_one_variable_is_enough(
    tmp_path: Path, environ: dict[str, str], name: str | None, expected: str, url: str, key: str
) -> None:
    choice = chosen(tmp_path, environ, name)
    assert (choice.name, choice.base_url, choice.key.reveal()) == (expected, url, key)
    assert key not in repr(choice) or not key


WHOLE = "model: {default: M, provider: custom, base_url: 'http://h:1/v1', api_key: KEY-1, context_length: 5000}\n"


@pytest.mark.parametrize(
    ("config", "expected", "url", "key", "window"),
    [
        (WHOLE, "custom/M", "http://h:1/v1", "KEY-1", 5000),
        ("model: {default: M, base_url: 'http://h:1/v1/'}\n", "custom/M", "http://h:1/v1", "", 128_000),
        ("model: qwen/q  # a name\n", "openrouter/qwen/q", "https://openrouter.ai/api/v1", "sk-OPENROUTER", 128_000),
        (
            "model: {default: qwen/q, provider: auto}\n",
            "openrouter/qwen/q", "https://openrouter.ai/api/v1", "sk-OPENROUTER", 128_000,
        ),
        ("model: {default: m, provider: ollama}\n", "ollama/m", "http://127.0.0.1:11434/v1", "", 32_768),
        ("model: {default: m, provider: vllm, base_url: 'http://h:2/v1'}\n", "vllm/m", "http://h:2/v1", "", 32_768),
        (
            "model: {default: anthropic/m, provider: anthropic, api_key: K}\n",
            "anthropic/m", "https://api.anthropic.com", "K", 128_000,
        ),
        (
            "model: {default: m, base_url: 'https://api.openai.com/v1', api_key: K}\n",
            "openai/m", "https://api.openai.com/v1", "K", 128_000,
        ),
    ],
)  # fmt: skip
def test_the_file_names_the_model_in_each_of_its_forms(
    tmp_path: Path, config: str, expected: str, url: str, key: str, window: int
) -> None:
    choice = chosen(tmp_path, dict(OPENROUTER), config=config)
    assert (choice.name, choice.base_url, choice.key.reveal(), choice.window) == (expected, url, key, window)


@pytest.mark.parametrize(
    ("environ", "config", "name", "kind", "words"),
    [
        ({}, "", None, Misconfigured, "OPENROUTER_API_KEY"),
        ({}, "", "anthropic/claude", Misconfigured, "ANTHROPIC_API_KEY"),
        ({}, "model: {provider: custom, default: m}\n", None, Misconfigured, "model.base_url"),
        ({}, "model: {default: anthropic/m, api_key: K}\n", None, Misconfigured, "together with model.provider"),
        ({}, "model: {provider: nobody, default: m}\n", None, NotFound, "nobody"),
        ({}, "model: {provider: ollama}\n", None, Misconfigured, "hermes model list ollama"),
        ({}, "model: {base_url: 'ftp://h/'}\n", None, Misconfigured, "https://host/v1"),
        ({}, "model: {base_url: 'http://u:p@h/'}\n", None, Misconfigured, "model.api_key"),
        ({}, "model: [a]\n", None, Misconfigured, "a list"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path, environ: dict[str, str], config: str, name: str | None, kind: type[HermesError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        chosen(tmp_path, environ, name, config=config)


def test_a_key_goes_to_its_own_vendor_only(tmp_path: Path) -> None:
    config = "model: {default: M, base_url: 'http://stranger:1/v1'}\n"
    assert not chosen(tmp_path, {**OPENAI, **ANTHROPIC, **OPENROUTER}, config=config).key
    mine = "model: {default: anthropic/x, provider: custom, base_url: 'http://h:1/v1', api_key: KEY-1}\n"
    assert chosen(tmp_path, dict(ANTHROPIC), "anthropic/x", config=mine).key.reveal() != "sk-ANTHROPIC"


def test_every_key_is_known_to_the_redactor(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(WHOLE)
    settings = load(home=tmp_path, environ={**OPENAI, **ANTHROPIC, **OPENROUTER})
    assert {"KEY-1", "sk-OPENAI", "sk-ANTHROPIC", "sk-OPENROUTER"} <= set(secrets(settings))


def test_the_bundled_table_says_where_it_is_from_and_knows_the_models_that_are_used_by_default() -> None:
    assert table().source
    assert table().date > "2026-01-01"
    for one in VENDORS:
        if one.model and not one.is_local and one.name != "nous":
            known = facts(one.name, one.model)
            assert known is not None
            assert known.window
            assert known.price


def test_a_dated_name_is_its_model() -> None:
    assert facts("openai", "gpt-5-2025-08-07") == facts("openai", "gpt-5") is not None
    assert facts("nous", "anthropic/claude-sonnet-4-5-20250929") is not None
    assert facts("openai", "gpt-5-of-my-own") is None


def test_nothing_that_holds_a_key_shows_it(tmp_path: Path) -> None:
    prepared = head("POST", "http://h/", {"Authorization": "Bearer sk-OPENAI"})
    place = Place("openai", "m", "http://h/", "sk-OPENAI")
    assert "sk-OPENAI" not in f"{prepared!r} {place!r} {chosen(tmp_path, dict(OPENAI))!r}"
