"""The table of what may be done, read by one pure function."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.effect import CallTool, Connect, Effect, ReadPath, RunCommand, WritePath
from hermes.domain.machine import Protection
from hermes.domain.principal import LOCAL, Principal
from hermes.effects import places
from hermes.effects.places import KEPT_FILES, KEPT_FOLDERS, KEPT_OF_GIT, Grounds
from hermes.effects.policy import TABLE, Situation, is_write, judge, pattern_of
from hermes.effects.shown import covered
from hermes.machines import workspace

W = Path("/home/me/work")
GROUNDS = Grounds(home=Path("/home/me/.hermes"), user_home=Path("/home/me"), listed=("10.1.2.0/24:443", "db.lan:5432"))
HELD = Situation(Principal.owner(), "workspace", "sandbox", True, W, GROUNDS)
ALONE = replace(HELD, is_attended=False)
BARE = replace(HELD, protection="none")


def run(command: str, *, full: bool = False) -> RunCommand:
    return RunCommand(command, W, is_full=full)


def said(effect: Effect, situation: Situation, *granted: str) -> str:
    verdict = judge(effect, situation, granted)
    return f"{verdict.decision} {verdict.rule}"


@pytest.mark.parametrize(
    "command", ["ls", "rm -rf .", "curl x | sh", "$(echo \\x72m) /", "sudo reboot", "python -c 'x'"]
)
def test_in_the_sandbox_the_text_of_a_command_does_not_matter(command: str) -> None:
    assert said(run(command), HELD) == said(run(command), ALONE) == "allow inside"


@pytest.mark.parametrize(
    ("situation", "decision"),
    [
        (BARE, "ask"),
        (replace(BARE, is_attended=False), "deny"),
        (replace(HELD, protection="confined"), "ask"),
        (replace(ALONE, protection="confined"), "deny"),
    ],
)
def test_what_nothing_holds_is_asked_about_or_denied(situation: Situation, decision: str) -> None:
    assert said(run("make test"), situation) == f"{decision} unheld-command"
    assert said(run("ls -la src"), situation) == "allow reading-command"


@pytest.mark.parametrize("protection", ["sandbox", "confined", "none"])
@pytest.mark.parametrize("is_attended", [True, False])
def test_who_chose_full_mode_is_not_asked_and_not_refused(protection: Protection, is_attended: bool) -> None:
    full = replace(HELD, mode="full", protection=protection, is_attended=is_attended)
    for effect in (
        run("make test"),
        run("make test", full=True),
        ReadPath(Path("/home/me/notes.txt")),
        WritePath(Path("/home/me/.bashrc")),
        WritePath(W / ".git/hooks/pre-commit"),
        Connect("example.com", 443),
    ):
        assert said(effect, full) == "allow full-mode"
    assert said(ReadPath(Path("/home/me/.ssh/id_rsa")), full) == "deny secret"
    assert said(WritePath(GROUNDS.home / ".env"), full) == "deny own-files"
    assert said(Connect("localhost", 80), full) == "deny private-address"
    stranger = replace(full, principal=Principal("key", "k", LOCAL, frozenset({"jobs:read"})))
    assert said(run("ls"), stranger) == "deny not-entitled"


def test_leaving_the_sandbox_is_asked_about_whatever_it_says() -> None:
    assert said(run("ls", full=True), HELD) == "ask full-access"
    assert said(run("ls", full=True), ALONE) == "deny full-access"


@pytest.mark.parametrize(
    ("path", "reading", "writing"),
    [
        ("/home/me/work/a/b.py", "allow inside", "allow inside"),
        ("/home/me/work", "allow inside", "allow inside"),
        ("/home/me/workshop/a", "ask outside-read", "ask outside-write"),
        ("/home/me/notes.txt", "ask outside-read", "ask outside-write"),
        ("/usr/include/stdio.h", "allow public", "ask started-outside"),
        ("/etc/hosts", "ask outside-read", "ask started-outside"),
        ("/home/me/.bashrc", "ask outside-read", "ask started-outside"),
        ("/home/me/.config/any/thing", "ask outside-read", "ask started-outside"),
        ("/home/me/Makefile", "ask outside-read", "ask started-outside"),
        ("/home/me/bin/ls", "ask outside-read", "ask started-outside"),
        ("/data/other/.git/hooks/pre-commit", "ask outside-read", "ask started-outside"),
        ("/var/spool/cron/me", "ask outside-read", "ask started-outside"),
        ("/home/me/.ssh/id_rsa", "deny secret", "deny secret"),
        ("/home/me/.aws/credentials", "deny secret", "deny secret"),
        ("/home/me/.config/gcloud/x", "deny secret", "deny secret"),
        ("/home/you/.ssh/authorized_keys", "deny secret", "deny secret"),
        ("/etc/shadow", "deny secret", "deny secret"),
        ("/proc/1/environ", "deny secret", "deny secret"),
        ("/dev/zero", "deny device", "deny device"),
        ("/home/me/.hermes/.env", "deny own-files", "deny own-files"),
        ("/home/me/.hermes/state.db", "deny own-files", "deny own-files"),
        ("/home/me/.hermes/workspaces/x/a", "ask outside-read", "ask outside-write"),
        ("/home/me", "deny secret", "ask outside-write"),
        ("/", "deny secret", "ask outside-write"),
        ("/home/me/work/.git/hooks/pre-commit", "allow inside", "ask kept"),
        ("/home/me/work/sub/.git/config", "allow inside", "ask kept"),
        ("/home/me/work/.git", "allow inside", "ask kept"),
        ("/home/me/work/.git/refs/heads/x", "allow inside", "allow inside"),
        ("/home/me/work/.vscode/tasks.json", "allow inside", "ask kept"),
        ("/home/me/work/.envrc", "allow inside", "ask kept"),
        ("/home/me/work/.GIT/Hooks/x", "allow inside", "ask kept"),
    ],
)
def test_each_place_has_its_rule(path: str, reading: str, writing: str) -> None:
    assert said(ReadPath(Path(path)), HELD) == reading
    assert said(WritePath(Path(path)), HELD) == writing
    assert said(ReadPath(Path(path)), ALONE) == reading.replace("ask", "deny")
    assert said(WritePath(Path(path)), ALONE) == writing.replace("ask", "deny")


def test_nothing_is_written_where_nothing_may_be() -> None:
    reading = replace(HELD, mode="read-only")
    assert said(WritePath(W / "a"), reading) == "deny read-only"
    assert said(run("touch a"), reading) == "allow inside"


def test_what_hermes_runs_from_is_kept() -> None:
    inside = replace(HELD, grounds=replace(GROUNDS, runs_from=(W / ".venv",)))
    assert said(WritePath(W / ".venv/lib/x.py"), inside) == "ask kept"


def test_what_the_model_was_shown_it_may_read_and_nothing_beside_it() -> None:
    shown = replace(HELD, readable=(GROUNDS.home / "sessions/s/results",))
    assert said(ReadPath(GROUNDS.home / "sessions/s/results/a.txt"), shown) == "allow inside"
    assert said(ReadPath(GROUNDS.home / "sessions/t/results/a.txt"), shown) == "deny own-files"
    assert said(WritePath(GROUNDS.home / "sessions/s/results/a.txt"), shown) == "deny own-files"


@pytest.mark.parametrize(
    ("host", "port", "rule"),
    [
        ("github.com", 443, "allow known-host"),
        ("API.GitHub.com.", 443, "allow known-host"),
        ("raw.githubusercontent.com", 443, "allow known-host"),
        ("github.com.evil.example", 443, "ask other-host"),
        ("notgithub.com", 443, "ask other-host"),
        ("example.com", 80, "ask other-host"),
        ("93.184.216.34", 80, "ask other-host"),
        ("10.1.2.3", 443, "allow known-host"),
        ("10.1.2.3", 80, "deny private-address"),
        ("db.lan", 5432, "allow known-host"),
        *(
            (host, 80, "deny private-address")
            for host in (
                "127.0.0.1",
                "localhost",
                "x.localhost",
                "169.254.169.254",
                "metadata.google.internal",
                "10.0.0.1",
                "192.168.1.1",
                "100.64.0.1",
                "0.0.0.0",
                "[::1]",
                "::ffff:127.0.0.1",
                "fd00::1",
                "fe80::1%eth0",
                "64:ff9b::7f00:1",
                "2002:7f00:1::",
                "2130706433",
                "0x7f.1",
                "127.1",
                "0177.0.0.1",
                "router",
                "printer.local",
                "a..b",
                "",
                "ex ample.com",
                "example.com\x00.github.com",
                "github.com%00.evil",
                "user@github.com",
                "\u2488.github.com",
                "224.0.0.1",
            )
        ),
    ],
)
def test_each_host_has_its_rule(host: str, port: int, rule: str) -> None:
    assert said(Connect(host, port), HELD) == rule


def test_a_tool_that_nobody_can_see_into_is_asked_about() -> None:
    assert said(CallTool("mcp_send", "{}"), HELD) == "ask unseen-tool"
    assert said(CallTool("mcp_send", "{}"), ALONE) == "deny unseen-tool"
    assert said(CallTool("mcp_send", "{}"), ALONE, "call mcp_send") == "allow unseen-tool"


@pytest.mark.parametrize("effect", [run("ls"), ReadPath(W), WritePath(W / "a"), Connect("github.com", 443)])
def test_who_may_not_may_not(effect: Effect) -> None:
    stranger = replace(HELD, principal=Principal("key", "k", LOCAL, frozenset({"jobs:read"})))
    assert said(effect, stranger) == "deny not-entitled"
    entitled = replace(stranger, principal=Principal("key", "k", LOCAL, frozenset({"tools:*"})))
    assert said(effect, entitled).startswith("allow")


def test_a_yes_to_a_pattern_covers_the_same_again_also_when_nobody_is_there() -> None:
    effect = run("npm run build", full=True)
    pattern = pattern_of(effect)
    assert said(effect, ALONE, pattern) == "allow full-access"
    assert said(run("npm run other", full=True), ALONE, pattern) == "deny full-access"
    assert said(replace(effect, cwd=W / "other"), ALONE, pattern) == "deny full-access"
    assert said(run("npm run build"), replace(ALONE, protection="none"), pattern) == "deny unheld-command"


@pytest.mark.parametrize(
    "command",
    [
        "python3 x.py",
        "bash -c ls",
        "npx tool",
        "env FOO=1 ls",
        "sudo ls",
        "find . -name x",
        "ls > out",
        "ls $HOME",
        "ls *",
        "x() { :; }",
    ],
)
def test_there_is_no_wider_yes_for_what_does_as_it_is_told(command: str) -> None:
    assert pattern_of(run(command)) == ""


def test_a_yes_to_a_file_is_none_to_everything_below_its_neighbours() -> None:
    pattern = pattern_of(ReadPath(Path("/data/notes.txt")))
    assert said(ReadPath(Path("/data/other.txt")), ALONE, pattern) == "allow outside-read"
    assert said(ReadPath(Path("/data/more"), is_deep=True), ALONE, pattern) == "deny outside-read"
    deep = pattern_of(ReadPath(Path("/data/more"), is_deep=True))
    assert said(ReadPath(Path("/data/more"), is_deep=True), ALONE, deep) == "allow outside-read"
    assert said(ReadPath(Path("/data"), is_deep=True), ALONE, deep) == "deny outside-read"


def test_a_yes_to_writing_a_file_covers_this_file_alone() -> None:
    effect = WritePath(Path("/data/notes.txt"), "one")
    pattern = pattern_of(effect)
    assert said(replace(effect, summary="two"), ALONE, pattern) == "allow outside-write"
    assert said(WritePath(Path("/data/other.txt")), ALONE, pattern) == "deny outside-write"
    assert said(WritePath(Path("/data/notes.txt/x")), ALONE, pattern) == "deny outside-write"


@pytest.mark.parametrize(
    "path",
    [
        *(f"/home/me/{name}" for name in (".bashrc", ".gitconfig", ".zshrc", ".envrc", ".vimrc", "Makefile", ".x/y")),
        "/data/Makefile",
        "/home/me/.CONFIG/autostart/x.desktop",
        "/home/me/work/.git/hooks/pre-commit",
        "/home/me/work/.envrc",
    ],
)
def test_what_a_persons_own_tools_run_is_asked_about_every_time(path: str) -> None:
    effect = WritePath(Path(path))
    assert judge(effect, HELD).decision == "ask"
    assert judge(effect, HELD).pattern == ""
    assert judge(effect, HELD, {pattern_of(effect), f"write {Path(path).parent}/*", ""}).decision == "ask"


def test_a_yes_to_a_file_beside_it_does_not_open_what_is_hidden() -> None:
    pattern = pattern_of(ReadPath(Path("/home/me/notes.txt")))
    assert said(ReadPath(Path("/home/me/.env")), ALONE, pattern) == "deny outside-read"


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        (WritePath(Path("/data/a.txt")), "writing /data/a.txt again, whatever the content; no other file"),
        (ReadPath(Path("/data/a.txt")), "reading every file in /data that is not hidden"),
        (ReadPath(Path("/data"), is_deep=True), "reading everything below /data"),
        (ReadPath(Path("/data/.env")), "reading /data/.env"),
        (Connect("example.com", 80), "connecting to example.com:80"),
        (CallTool("mcp_send", "{}"), "calling the tool mcp_send, with any arguments"),
        (WritePath(Path("/data/a\x1b[2J")), "writing /data/a\\x1b[2J again, whatever the content; no other file"),
    ],
)
def test_what_a_wider_yes_covers_is_said_in_words(effect: Effect, words: str) -> None:
    assert covered(pattern_of(effect)) == words


def test_a_yes_to_a_harmless_subcommand_covers_other_names_but_no_other_options() -> None:
    pattern = pattern_of(run("git add a.py"))
    assert pattern == pattern_of(run("git add b.py c.py"))
    assert pattern != pattern_of(run("git add --intent-to-add b.py"))
    assert pattern_of(run("git push origin main")) != pattern_of(run("git push origin other"))


@pytest.mark.parametrize("zone", [zone for zone, rule in TABLE.items() if rule.attended == "deny"])
def test_no_yes_lifts_what_is_denied_to_everybody(zone: str) -> None:
    effects = {
        "read-only": (WritePath(W / "a"), replace(HELD, mode="read-only")),
        "device": (ReadPath(Path("/dev/zero")), HELD),
        "secret": (ReadPath(Path("/etc/shadow")), HELD),
        "own-files": (ReadPath(GROUNDS.home / ".env"), HELD),
        "private-address": (Connect("localhost", 80), HELD),
        "not-entitled": (run("ls"), replace(HELD, principal=Principal("key", "k", LOCAL))),
    }
    effect, situation = effects[zone]
    assert said(effect, situation, pattern_of(effect)) == f"deny {zone}"
    assert judge(effect, situation).pattern == ""


def test_nobody_there_is_never_asked() -> None:
    assert {rule.unattended for rule in TABLE.values()} == {"allow", "deny"}
    assert all(rule.unattended == "allow" for rule in TABLE.values() if rule.attended == "allow")


def test_what_the_sandbox_keeps_the_policy_keeps() -> None:
    assert frozenset(workspace.KEPT_FOLDERS) == KEPT_FOLDERS
    assert frozenset(workspace.KEPT_FILES) == KEPT_FILES
    assert frozenset(workspace.KEPT_OF_GIT) == KEPT_OF_GIT


def test_only_what_may_change_files_is_a_write() -> None:
    assert is_write(run("make"), HELD)
    assert is_write(WritePath(W / "a"), HELD)
    assert not is_write(run("ls src"), HELD)
    assert not is_write(run("make"), replace(HELD, mode="read-only"))
    assert is_write(run("make", full=True), replace(HELD, mode="read-only"))
    assert not is_write(ReadPath(W), HELD)


def test_hosts_are_plain_names() -> None:
    assert all(places.plain(host) == host and not places.is_private(host) for host in places.KNOWN_HOSTS)
