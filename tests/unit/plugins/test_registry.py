"""A name leads to a factory, whoever brought it, and one broken part hides no other."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.domain.errors import Conflict, Misconfigured, NotFound
from hermes.plugins import Registry
from hermes.plugins.registry import Part

PARTS = [
    Part("theirs", "json:dumps", "good-parts"),
    Part("absent", "no_such_module_anywhere:make", "bad-parts"),
    Part("lacking", "json:no_such_attribute", "bad-parts"),
    Part("shapeless", "json", "bad-parts"),
]


def registry(*parts: Part) -> Registry[Callable[..., object]]:
    return Registry("hermes.things", {"ours": "json:loads"}, discover=lambda _group: parts)


def test_names_of_ours_and_of_others_come_by_the_same_door() -> None:
    assert registry(*PARTS).names() == ("absent", "lacking", "ours", "shapeless", "theirs")
    assert registry(*PARTS).load("ours")("[1]") == [1]
    assert registry(*PARTS).load("theirs")([1]) == "[1]"


def test_a_nested_attribute_can_be_named() -> None:
    assert registry(Part("deep", "json:JSONDecoder.decode", "good-parts")).load("deep").__name__ == "decode"


def test_nothing_is_imported_before_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "slow_part.py").write_text("made = len\n")
    code = (
        "import sys\nfrom hermes.plugins import Registry\n"
        "r = Registry('g', {'slow': 'slow_part:made'}, discover=lambda group: [])\n"
        "r.names()\nassert 'slow_part' not in sys.modules\nassert 'importlib.metadata' not in sys.modules\n"
        "assert r.load('slow') is len\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_an_unknown_name_is_not_found_and_the_nearest_is_named() -> None:
    with pytest.raises(NotFound, match="did you mean 'theirs'"):
        registry(*PARTS).load("thiers")
    with pytest.raises(NotFound, match="there is ours"):
        registry().load("zzz")


@pytest.mark.parametrize("name", ["absent", "lacking", "shapeless"])
def test_a_part_that_cannot_be_imported_names_its_distribution_and_how_to_remove_it(name: str) -> None:
    parts = registry(*PARTS)
    with pytest.raises(Misconfigured, match="pip uninstall bad-parts"):
        parts.load(name)
    assert parts.load("theirs")([1]) == "[1]"


def test_a_built_in_part_that_cannot_be_imported_blames_no_distribution() -> None:
    with pytest.raises(Misconfigured, match="install Hermes again"):
        Registry[object]("g", {"ours": "no_such_module_anywhere:make"}, discover=lambda _group: ()).load("ours")


def test_a_name_that_two_offer_is_a_conflict_that_names_both_and_leaves_the_others() -> None:
    parts = registry(*PARTS, Part("ours", "json:dumps", "rival-parts"))
    with pytest.raises(Conflict, match=r"Hermes itself .*json:loads.* 'rival-parts' .*pip uninstall rival-parts"):
        parts.load("ours")
    assert parts.names().count("ours") == 1
    assert parts.load("theirs")([1]) == "[1]"


def test_installed_distributions_are_found_by_their_group(tmp_path: Path) -> None:
    info = tmp_path / "more_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: more-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hermes.things]\ngood = json:dumps\nbad = nowhere_at_all:x\n[other]\nx = y:z\n"
    )
    code = (
        "from hermes.plugins import Registry\nfrom hermes.domain.errors import Misconfigured\n"
        "r = Registry('hermes.things', {})\nassert r.names() == ('bad', 'good'), r.names()\n"
        "assert r.load('good')([1]) == '[1]'\n"
        "try:\n    r.load('bad')\nexcept Misconfigured as error:\n    assert 'pip uninstall more-parts' in str(error)\n"
        "else:\n    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
