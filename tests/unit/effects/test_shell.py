"""What can be said of a command before it runs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.effect import RunCommand
from hermes.domain.principal import Principal
from hermes.effects.places import Grounds
from hermes.effects.policy import Situation, judge
from hermes.effects.shell import inspect


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("ls -la", (("ls", "-la"),)),
        ("cat a | grep 'b c' && wc -l < d", (("cat", "a"), ("grep", "b c"), ("wc", "-l"))),
        ('echo "plain words" 2>&1; pwd # why', (("echo", "plain words"), ("pwd",))),
        ("grep -n x'y'\"z\" file 2>/dev/null", (("grep", "-n", "xyz", "file"),)),
    ],
)
def test_plain_words_are_understood(text: str, commands: tuple[tuple[str, ...], ...]) -> None:
    found = inspect(text)
    assert found is not None
    assert found.commands == commands


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "# only a comment",
        "echo $HOME",
        "echo $(id)",
        "echo `id`",
        "cat <(id)",
        "ls *",
        "ls ~",
        "ls {a,b}",
        "echo $'\\x41'",
        "X=1 ls",
        "(ls)",
        "{ ls; }",
        "if true; then ls; fi",
        "for x in a; do ls; done",
        "f() { ls; }; f",
        "cat <<EOF\nx\nEOF",
        "ls &",
        "! ls",
        "ls\\ a",
        "ls \x1b[2J",
        "ls \u202e",
        "ls \u00a0x",
        "ls \r rm",
        "echo 'unclosed",
        "ls ;; ls",
        "[[ -f x ]]",
        "ls " + "a" * 5_000,
        "ls;" * 70,
        'echo "$x"',
        "((1))",
        "coproc ls",
        "ls ??",
        "cat <<< x",
    ],
)
def test_what_is_not_plain_is_not_understood(text: str) -> None:
    assert inspect(text) is None


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    inspect(text)


@pytest.fixture
def bare(tmp_path: Path) -> Situation:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a")
    (tmp_path / "secret").write_text("s")
    (work / "link").symlink_to(tmp_path / "secret")
    grounds = Grounds(home=tmp_path / "home", user_home=tmp_path)
    return Situation(Principal.owner(), "workspace", "none", False, work, grounds)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls -la .",
        "cat a.txt",
        "grep -rn 'x y' .",
        "head -n 5 a.txt | wc -l",
        "find . -name a.txt -type f",
        "sort -u a.txt",
        "rg --hidden x",
        "wc < a.txt",
        "echo done",
        "diff a.txt b.txt",
        "tail -f a.txt",
        "grep -e x -f a.txt",
    ],
)
def test_what_only_reads_inside_needs_no_sandbox(bare: Situation, command: str) -> None:
    assert judge(RunCommand(command, bare.workspace), bare).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "cat ../secret",
        "cat /etc/passwd",
        "cat link",
        "cat < link",
        "cat ./sub/../../secret",
        "grep -f link x",
        "grep -flink x",
        "grep --file=link x",
        "grep --file=../secret x",
        "find / -name x",
        "find . -exec rm {} ;",
        "find . -delete",
        "find . -fprint out",
        "find -L . -name x",
        "sort -o out a.txt",
        "sort --output=out a.txt",
        "sort --out=out a.txt",
        "sort --compress-program=sh a.txt",
        "rg --pre sh x",
        "rg --pr=sh x",
        "rg -L x",
        "rg -nL x",
        "date -s now",
        "tree -o out",
        "diff -r . sub",
        "diff --recur . sub",
        "ls > out",
        "ls >> out",
        "touch a",
        "rm a.txt",
        "git status",
        "sed -n 1p a.txt",
        "awk 1 a.txt",
        "python -V",
        "./ls",
        "/tmp/cat a.txt",
        "env",
        "cd /",
        "ls; touch a",
        "ls && ls | tee out",
        "xargs ls",
        "command ls",
        "exec ls",
        "uniq a.txt b.txt",
        "file -C -m x",
        "cat ~/.ssh/id_rsa",
        "tail --pid=1 a.txt",
        "sort -oout a.txt",
    ],
)
def test_what_may_do_more_is_not_taken_for_reading(bare: Situation, command: str) -> None:
    assert judge(RunCommand(command, bare.workspace), bare).decision == "deny"


def test_a_shell_that_stands_outside_reads_nothing(bare: Situation) -> None:
    assert judge(RunCommand("cat secret", bare.workspace.parent), bare).decision == "deny"
    assert judge(RunCommand("ls", bare.workspace.parent), bare).decision == "deny"
