"""What every test may ask for."""

from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Half characters that a test logs on purpose cannot be sent from one process of the run to another."""
    report = yield
    report.sections = [(title, text.encode("utf-8", "backslashreplace").decode()) for title, text in report.sections]
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database-url",
        default="sqlite://",
        help="the engine the contract suites run on: memory://, sqlite:// or postgresql://…",
    )


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--database-url"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
