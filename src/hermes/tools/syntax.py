"""Says where a file that was just written cannot be read by those it is for.

Invariant: nothing is run; what is too large or of an unknown kind is not looked at.
"""

from collections.abc import Callable, Mapping

_LARGEST = 500_000


def mistake(name: str, text: str) -> str | None:
    """Return the first mistake with its line, None when there is none to be seen."""
    check = _CHECKS.get(name.rpartition(".")[2].lower())
    if check is None or len(text) > _LARGEST:
        return None
    try:
        return check(text)
    except (RecursionError, MemoryError):
        return "it is nested too deeply"


def _python(text: str) -> str | None:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except ValueError as error:
        return str(error)
    return None


def _json(text: str) -> str | None:
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}: {error.msg}"
    except ValueError as error:
        return str(error)
    return None


def _toml(text: str) -> str | None:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return str(error)
    return None


def _yaml(text: str) -> str | None:
    import yaml

    try:
        for _ in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            continue
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        return f"{line}{error.problem}"
    except yaml.YAMLError as error:
        return str(error)
    return None


_CHECKS: Mapping[str, Callable[[str], str | None]] = {
    "py": _python,
    "pyi": _python,
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
    "yml": _yaml,
}
