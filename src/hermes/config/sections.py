"""The settings of Hermes, section by section: what each is for, its default, its bounds and its variables."""

from datetime import timedelta
from typing import Literal

from hermes.config.schema import About, setting
from hermes.config.secret import Secret, Url
from hermes.domain.records import dataclass


def _known_zone(name: str) -> None:
    if name == "UTC":
        return
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("expected a time zone such as UTC or Europe/Berlin") from None


_A_SECOND = timedelta(seconds=1)


def _only_listable(items: tuple[str, ...]) -> None:
    import ipaddress

    for item in items:
        host, colon, port = item.rpartition(":")
        if not colon or not host or not (port == "*" or port.isdigit()):
            raise ValueError(f"expected host:port or network:port instead of {item!r}")
        if "/" in host:
            ipaddress.ip_network(host.strip("[]"))


@dataclass(frozen=True, slots=True)
class Database:
    """Where everything is kept."""

    url: Url | None = setting(
        None,
        About(
            "The database: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME. Without it, state.db in the home.",
            names=("DATABASE_URL", "HERMES_DB_URI"),
        ),
    )
    synchronous: Literal["full", "normal"] = setting(
        "full",
        About("SQLite only. full: a commit survives a power cut; normal: the last commits may be lost in one."),
    )
    busy_timeout: timedelta = setting(
        timedelta(seconds=5),
        About("How long to wait for another process that holds the database.", at_least=timedelta(0)),
    )
    queue_limit: int = setting(10_000, About("How many writes may wait before a new one is refused.", at_least=1))
    readers: int = setting(4, About("How many reads run at once.", at_least=1, at_most=256))


@dataclass(frozen=True, slots=True)
class Redis:
    """Not used yet. Will wake other machines at once and never hold the truth; today they notice within a second."""

    url: Url | None = setting(
        None,
        About("Not used yet. The Redis server: redis://:PASSWORD@HOST:6379/0.", names=("REDIS_URL", "HERMES_BUS_URL")),
    )


@dataclass(frozen=True, slots=True)
class Jobs:
    """How intentions are worked off."""

    workers: int = setting(8, About("How many jobs are done at once.", at_least=1, at_most=10_000))
    lease: timedelta = setting(
        timedelta(seconds=30),
        About(
            "How long a worker that says nothing keeps its job; then another takes it.", at_least=timedelta(seconds=1)
        ),
    )
    poll: timedelta = setting(
        timedelta(seconds=1),
        About("How often to look for work when nothing rings.", at_least=timedelta(milliseconds=10)),
    )
    keep_done: timedelta = setting(
        timedelta(days=30),
        About("How long finished jobs can be looked at before they are deleted.", at_least=timedelta(0)),
    )


@dataclass(frozen=True, slots=True)
class Events:
    """How long facts are kept."""

    keep: timedelta = setting(
        timedelta(days=90), About("How long events can be read again before they are deleted.", at_least=timedelta(0))
    )


@dataclass(frozen=True, slots=True)
class Logging:
    """What is written to logs/hermes.jsonl in the home."""

    level: Literal["debug", "info", "warning", "error"] = setting("info", About("The least level that is written."))
    max_bytes: int = setting(
        10_000_000, About("How large the log may grow before a new one is begun.", at_least=10_000)
    )
    backups: int = setting(5, About("How many old logs are kept.", at_least=1, at_most=1_000))
    to_stderr: bool = setting(False, About("Whether the same lines also go to standard error."))


@dataclass(frozen=True, slots=True)
class Time:
    """How times are shown and schedules read when they do not say."""

    zone: str = setting("UTC", About("The time zone, by its name in the IANA list.", check=_known_zone))


@dataclass(frozen=True, slots=True)
class Agent:
    """How an assistant works."""

    max_turns: int = setting(
        90,
        About("How many model calls one run may take.", names=("HERMES_MAX_ITERATIONS",), at_least=1, at_most=100_000),
    )
    context_files: bool = setting(
        True, About("Whether SOUL.md and the context files of the workspace (AGENTS.md and others) are read.")
    )
    json_logs: bool = setting(True, About("Whether what is said is also written to sessions/session_*.json."))


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be used; without a value there is no bound. Money is in dollars."""

    run_cost: float | None = setting(None, About("How much one run may cost.", at_least=0.0))
    run_tokens: int | None = setting(None, About("How many tokens one run may use.", at_least=1))
    run_time: timedelta | None = setting(None, About("How long one run may take.", at_least=_A_SECOND))
    session_cost: float | None = setting(None, About("How much one session may cost.", at_least=0.0))
    day_cost: float | None = setting(None, About("How much all sessions may cost in 24 hours.", at_least=0.0))


@dataclass(frozen=True, slots=True)
class Compression:
    """When a conversation that grows long is made shorter."""

    enabled: bool = setting(True, About("Whether it is done at all."))
    threshold: float = setting(
        0.5, About("At which share of the model's window it is done.", at_least=0.05, at_most=0.95)
    )
    target_ratio: float = setting(
        0.2, About("Which share of that stays as it is at the end.", at_least=0.05, at_most=0.8)
    )
    protect_first_n: int = setting(
        3, About("How many messages at the beginning stay as they are.", at_least=0, at_most=100)
    )
    protect_last_n: int = setting(
        20, About("How many messages at the end stay as they are, where they fit.", at_least=1, at_most=1_000)
    )


@dataclass(frozen=True, slots=True)
class Display:
    """How the chat screen looks and behaves."""

    busy: Literal["interrupt", "queue", "steer"] = setting(
        "interrupt",
        About(
            "What happens to words that are said while the assistant works: it stops and reads them, they wait, or it "
            "reads them at its next step."
        ),
    )
    skin: str = setting("default", About("Colours and words: a file of skins/ in the home, or one that comes along."))
    show_reasoning: bool = setting(False, About("Whether what the model thinks aloud is shown."))
    tool_progress: Literal["off", "tools", "all"] = setting(
        "tools", About("What is shown of the work: nothing, a line for each tool, or also what it printed.")
    )
    plain: bool = setting(
        False, About("Whether the chat is plain lines, for screen readers and terminals that can do little.")
    )


@dataclass(frozen=True, slots=True)
class User:
    """Who you are, for the assistant to know."""

    name: str = setting("", About("How you are called."))
    about: str = setting("", About("What the assistant should know of you: your work, how you like answers."))


@dataclass(frozen=True, slots=True)
class Terminal:
    """How commands run for an agent."""

    mode: Literal["read-only", "workspace", "full"] = setting(
        "workspace",
        About("What commands may write: nothing, the workspace, or everything (then there is no sandbox)."),
    )
    timeout: timedelta = setting(
        timedelta(seconds=180),
        About("How long a command may run unless it asks for more.", names=("TERMINAL_TIMEOUT",), at_least=_A_SECOND),
    )
    env_passthrough: tuple[str, ...] = setting(
        (),
        About("Names of variables that commands may see, such as PIP_INDEX_URL. Names of keys and tokens are refused."),
    )
    env_secrets: tuple[str, ...] = setting(
        (),
        About("Names of keys and tokens that commands, and all that they download and run, may see none the less."),
    )
    output_bytes: int = setting(
        50_000,
        About("How much of a command's output is kept at hand; all of it goes to a file.", at_least=1_000),
    )
    spill_bytes: int = setting(
        256_000_000,
        About("How large the file with all of a command's output may grow.", at_least=1_000_000),
    )
    background: int = setting(32, About("How many background processes a session may have.", at_least=0, at_most=1_000))


@dataclass(frozen=True, slots=True)
class Tools:
    """Which tools an assistant has. A name is a tool or a toolset; `platform:name` counts on one platform only."""

    enabled: tuple[str, ...] = setting(
        (), About("If any are named, only these are there, such as file, terminal or telegram:todo.")
    )
    disabled: tuple[str, ...] = setting((), About("These are not there, whatever else is said."))


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What holds a command back."""

    required: bool = setting(
        False, About("Whether commands are refused, instead of asked about, where no sandbox can be made.")
    )
    readable: tuple[str, ...] = setting(
        (), About("More files and folders that commands may read, such as ~/.gitconfig. Never those with secrets.")
    )
    listed: tuple[str, ...] = setting(
        (),
        About(
            "Private addresses that may be reached although they are not on the internet: "
            "host:port or network:port, such as 10.1.2.0/24:443; * for any port.",
            check=_only_listable,
        ),
    )
    memory: int = setting(4_000_000_000, About("How many bytes of memory a command may use.", at_least=50_000_000))
    processes: int = setting(
        512, About("How many processes and threads a command may have.", at_least=10, at_most=100_000)
    )
    file_bytes: int = setting(10_000_000_000, About("How large a file a command may write.", at_least=1_000_000))
    free_bytes: int = setting(
        500_000_000,
        About("A command is ended when less than this is left on the disk it writes to.", at_least=0),
    )
    network_bytes: int = setting(
        10_000_000_000, About("How many bytes a command may move over the network.", at_least=1_000_000)
    )


def _http_url(url: str) -> None:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("expected an address such as https://host/v1")
    if "@" in parts.netloc or parts.query:
        raise ValueError("expected an address without a password or a query; the key is model.api_key")


@dataclass(frozen=True, slots=True)
class Model:
    """Which model is asked, and how. In config.yaml `model: NAME` alone is enough."""

    default: str = setting(
        "",
        About("The model: a name, or provider/name. Without it, that of the first provider with a key.", is_whole=True),
    )
    provider: str = setting("", About("Who offers it, such as openrouter, anthropic, ollama or custom."))
    base_url: str | None = setting(
        None,
        About("Where it is offered, when not at its provider's own address: http://HOST:PORT/v1.", check=_http_url),
    )
    api_key: Secret | None = setting(None, About("The key for base_url or provider."))
    context_length: int | None = setting(
        None, About("How many tokens it can read, when Hermes does not know.", at_least=1_000, at_most=100_000_000)
    )
    max_tokens: int | None = setting(None, About("How many tokens an answer may have.", at_least=1))
    temperature: float | None = setting(
        None, About("How freely it chooses its words; the provider's own without it.", at_least=0.0, at_most=2.0)
    )
    reasoning_effort: Literal["", "none", "minimal", "low", "medium", "high", "xhigh"] = setting(
        "", About("How long it thinks before it answers.")
    )
    attempts: int = setting(4, About("How often a call is tried before it fails.", at_least=1, at_most=100))
    connect_timeout: timedelta = setting(
        timedelta(seconds=10), About("How long to wait for a connection.", at_least=timedelta(milliseconds=10))
    )
    first_timeout: timedelta = setting(
        timedelta(minutes=5),
        About(
            "How long to wait for the first of an answer; a local model reads slowly.",
            at_least=timedelta(milliseconds=10),
        ),
    )
    idle_timeout: timedelta = setting(
        timedelta(minutes=2),
        About("How long to wait for more of an answer that has begun.", at_least=timedelta(milliseconds=10)),
    )
    timeout: timedelta = setting(
        timedelta(minutes=30), About("How long one call may take in all.", at_least=timedelta(milliseconds=10))
    )


@dataclass(frozen=True, slots=True)
class Local:
    """The embedded model, which needs no key and no network."""

    threads: int = setting(
        1,
        About(
            "How many threads it computes with; more help only while that many cores are idle.", at_least=1, at_most=256
        ),
    )
    window: int = setting(4096, About("How many tokens it can read at once.", at_least=1024, at_most=32_768))


@dataclass(frozen=True, slots=True)
class Vendors:
    """Keys and addresses of those who offer models. One key is enough."""

    openrouter_key: Secret | None = setting(None, About("The key for OpenRouter.", names=("OPENROUTER_API_KEY",)))
    openrouter_url: str | None = setting(
        None, About("Another address for it.", names=("OPENROUTER_BASE_URL",), check=_http_url)
    )
    anthropic_key: Secret | None = setting(None, About("The key for Anthropic.", names=("ANTHROPIC_API_KEY",)))
    anthropic_url: str | None = setting(
        None, About("Another address for it.", names=("ANTHROPIC_BASE_URL",), check=_http_url)
    )
    openai_key: Secret | None = setting(None, About("The key for OpenAI.", names=("OPENAI_API_KEY",)))
    openai_url: str | None = setting(
        None,
        About(
            "Another address for it, or of any server that speaks alike.", names=("OPENAI_BASE_URL",), check=_http_url
        ),
    )
    nous_key: Secret | None = setting(None, About("The key for Nous Research.", names=("NOUS_API_KEY",)))
    nous_url: str | None = setting(None, About("Another address for it.", names=("NOUS_BASE_URL",), check=_http_url))
    deepseek_key: Secret | None = setting(None, About("The key for DeepSeek.", names=("DEEPSEEK_API_KEY",)))
    deepseek_url: str | None = setting(
        None, About("Another address for it.", names=("DEEPSEEK_BASE_URL",), check=_http_url)
    )
    ollama_url: str | None = setting(
        None, About("Where Ollama listens, when not on this machine: http://HOST:11434/v1.", check=_http_url)
    )
    lmstudio_url: str | None = setting(
        None, About("Where LM Studio listens, when not on this machine: http://HOST:1234/v1.", check=_http_url)
    )
    vllm_url: str | None = setting(
        None, About("Where vLLM listens, when not on this machine: http://HOST:8000/v1.", check=_http_url)
    )
    llamacpp_url: str | None = setting(
        None, About("Where llama.cpp listens, when not on this machine: http://HOST:8080/v1.", check=_http_url)
    )
