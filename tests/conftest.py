"""What every test may ask for."""

import pytest


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
