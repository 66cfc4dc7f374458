"""A repository that a command makes runs nothing outside of the sandbox; ordinary work with it goes on."""

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.machines.conftest import Place

from hermes.machines.gitconfig import judged
from hermes.machines.repositories import Repositories

pytestmark = pytest.mark.anyio


def git(folder: Path, *words: str) -> str:
    """Use git as the person does."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=20)
    return done.stdout + done.stderr


SET = "git config core.fsmonitor $PWD/evil.sh"
WAYS = {
    "hook": "cp evil.sh .git/hooks/pre-commit",
    "hook by a link": "ln -s ../../evil.sh .git/hooks/pre-commit",
    "hooks by a link": "rm -rf .git/hooks && mkdir h && cp evil.sh h/pre-commit && ln -s ../h .git/hooks",
    "hook nobody may list": "cp evil.sh .git/hooks/pre-commit && chmod 111 .git/hooks .git/hooks/pre-commit",
    "fsmonitor": SET,
    "spelled on one line": "printf '[core] fsmonitor = %s\\n' $PWD/evil.sh >> .git/config",
    "spelled over two lines": "printf '[core]\\nfsmonitor = \\\\\\n%s\\n' $PWD/evil.sh >> .git/config",
    "a section in a value": "printf '[user]\\na=\\\\\\n[x]\\n[CORE]\\nFSmonitor=%s\\n' $PWD/evil.sh >>.git/config",
    "hooks path": "mkdir .h && cp evil.sh .h/pre-commit && git config core.hooksPath .h",
    "filter": "git config filter.x.clean $PWD/evil.sh && echo '* filter=x' > .gitattributes",
    "included": "printf '[core]\\nfsmonitor = %s\\n' $PWD/evil.sh > inc && git config include.path ../inc",
    "worktree settings": "git config extensions.worktreeConfig 1 && git config --worktree core.fsmonitor $PWD/evil.sh",
    "elsewhere": f"{SET} && mv .git elsewhere && echo 'gitdir: elsewhere' > .git",
    "a link": f"{SET} && mv .git elsewhere && ln -s elsewhere .git",
    "common": f"{SET} && cd .git && mkdir ../d && mv config objects refs ../d && cd .. && echo ../d > .git/commondir",
    "bare": f"rm -rf .git && git init -q --bare . && {SET} && git config core.bare 0 && git config core.worktree .",
    "not writable": f"{SET} && chmod 444 .git/config && chmod 555 .git",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("below", ["", "a/b/c"])
async def test_git_of_the_person_runs_nothing_that_a_command_left(sandboxed: Place, way: str, below: str) -> None:
    there, ran = sandboxed.workspace / below, sandboxed.workspace.parent / "ran"
    made = (
        f"mkdir -p ./{below} && cd ./{below} && git init -q . && echo x > file && "
        f"printf '#!/bin/sh\\ntouch {ran}\\n' > evil.sh && chmod +x evil.sh && {WAYS[way]}"
    )
    done = await sandboxed.sh(made)
    assert done.exit_code == 0, done.output
    git(there, "status")
    git(there, "add", "-A")
    git(there, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-m", "x")
    assert not ran.exists()
    assert "switched off" in " ".join(done.notes)


async def test_a_second_command_and_one_in_the_background_are_looked_at_too(sandboxed: Place) -> None:
    await sandboxed.sh("git init -q .")
    assert (await sandboxed.sh("echo hello")).notes == ()
    done = await sandboxed.sh("echo x > .git/hooks/pre-push && chmod +x .git/hooks/pre-push")
    assert "the hook 'pre-push'" in done.notes[0]
    assert (await sandboxed.sh("true")).notes == ()
    state = await sandboxed.machine.spawn(sandboxed.command("git config core.pager evil"))
    await sandboxed.machine.wait(state.id, timedelta(seconds=20))
    said = await sandboxed.machine.output(state.id, offset=0, limit=10_000)
    assert b"core.pager" in said
    assert "evil" not in git(sandboxed.workspace, "config", "--get", "core.pager")


async def test_ordinary_work_in_a_repository_of_its_own_goes_on(sandboxed: Place) -> None:
    text = (
        "git init -q . && git config user.email me@example.com && git config user.name Me && "
        "echo a > a && git add a && git commit -qm one && git checkout -qb two && "
        "git remote add origin https://example.com/x.git && git config branch.two.remote origin && "
        "git config pull.rebase true"
    )
    done = await sandboxed.sh(text)
    assert (done.exit_code, done.notes) == (0, ())
    again = await sandboxed.sh("echo b > b && git add b && git commit -qm two && git log --oneline | wc -l")
    assert (again.output.split()[-1], again.notes) == (b"2", ())
    assert git(sandboxed.workspace, "config", "remote.origin.url").strip() == "https://example.com/x.git"


async def test_what_was_the_persons_before_is_left_as_it_is(sandboxed: Place) -> None:
    for place in ("", "deep/er"):
        folder = sandboxed.workspace / place
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "-q", ".")
        git(folder, "config", "core.editor", "vim")
        (folder / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
        (folder / ".git/hooks/pre-commit").chmod(0o755)
    done = await sandboxed.sh("echo x > y; git status >/dev/null; mkdir z")
    assert done.notes == ()
    for place in ("", "deep/er"):
        folder = sandboxed.workspace / place
        assert (folder / ".git/hooks/pre-commit").stat().st_mode & 0o111
        assert git(folder, "config", "core.editor").strip() == "vim"


async def test_hooks_where_there_were_none_are_looked_at(sandboxed: Place) -> None:
    git(sandboxed.workspace, "init", "-q", "--template=", ".")
    done = await sandboxed.sh("mkdir .git/hooks && echo x > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit")
    assert "pre-commit" in done.notes[0]


@pytest.mark.parametrize("text", ["git config user.email x@example.com", "git remote add up https://example.com/x"])
async def test_settings_that_are_kept_are_explained(sandboxed: Place, text: str) -> None:
    git(sandboxed.workspace, "init", "-q", ".")
    done = await sandboxed.sh(text)
    assert done.exit_code != 0
    assert "git config --global" in done.notes[0]
    assert (await sandboxed.sh("git config --global user.email x@example.com")).notes == ()


def test_a_repository_that_was_only_never_looked_at_is_not_taken_for_new(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"abcdef")
    deep.mkdir(parents=True)
    there = Repositories(tmp_path)
    for place in (tmp_path / "a", deep):
        git(place, "init", "-q", ".")
        git(place, "config", "core.editor", "vim")
    said = " ".join(there.disarm())
    assert "'a/.git'" in said
    assert "f/.git" not in said
    assert git(deep, "config", "core.editor").strip() == "vim"


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("[user]\n\tname = Me", True),
        ('[remote "o"]\n\turl = https://x/y', True),
        ('[remote "o"]\n\turl = ext::sh -c x', False),
        ('[remote "o"]\n\turl = e"xt:":sh', False),
        ('[remote "o"]\n\turl = --upload-pack=x', False),
        ('[remote "o"]\n\tuploadpack = x', False),
        ("[alias]\n\tx = !evil", False),
        ("[credential]\n\thelper = x", False),
        ("[gpg]\n\tprogram = x", False),
        ("[pager]\n\tlog = x", False),
        ('[submodule "x"]\n\tupdate = !evil', False),
        ('[url "ext::x"]\n\tinsteadOf = https://', False),
        ("[protocol]\n\tallow = always", False),
        ("[core]\n\tworktree = ../..", False),
        ("[core]\n\tworktree = ../sub", True),
        ("[user] name = Me", False),
        ("[user]\n\tname = Me\\\n[core]", False),
        ("[color]\n\tui = auto", True),
        ('[color "branch"]\n\tcurrent = red', True),
        ("# [core]\n", True),
        ("# a comment that ends so \\\n[user]\n\tname = x", True),
        ("\tname = without a section", False),
        ("[core]\n\tbare = false\x01", False),
    ],
)
def test_only_settings_that_name_no_program_stay(line: str, stays: bool) -> None:
    found = judged(line, Path("/w/.git"), Path("/w"))
    assert (not found.taken) is stays
    assert (found.text == line) is stays
    assert judged(found.text, Path("/w/.git"), Path("/w")).taken == ()
