"""Which places of a machine and of the net are whose: facts that the policy is made of, as data.

Invariant: a place is judged by its real path, a host by its plain name or number; what is odd is taken for the worst.
"""

import ipaddress
from collections.abc import Iterable
from pathlib import Path

from hermes.domain.records import dataclass


def _words(text: str) -> list[str]:
    return text.split()


_OF_A_HOME = _words("""
    .ssh .gnupg .aws .azure .kube .docker .netrc .pgpass .git-credentials .npmrc .pypirc .vault-token
    .terraform.d .password-store .mozilla .thunderbird .bash_history .zsh_history .python_history .config/gcloud
    .config/gh .config/op .config/hub .config/rclone .config/google-chrome .config/chromium
    .config/BraveSoftware .config/doctl .cargo/credentials .cargo/credentials.toml .gem/credentials
    .m2/settings.xml .local/share/keyrings .local/share/kwalletd Library/Keychains Library/Cookies
    """)
_ANYWHERE = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"})
_OF_THE_SYSTEM = _words("""
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssh /etc/ssl/private
    /etc/krb5.keytab /proc /dev /run /sys /var/run /var/lib/private /boot
    """)
_HOMES = (Path("/home"), Path("/Users"), Path("/root"))
_FOR_ALL_TO_READ = tuple(Path(name) for name in ("/usr", "/lib", "/lib64", "/bin", "/sbin"))

KEPT_FOLDERS = frozenset({".hermes", ".vscode", ".idea", ".cursor", ".zed", ".devcontainer"})
KEPT_FILES = frozenset({".envrc", ".pre-commit-config.yaml", ".gitmodules"})
KEPT_OF_GIT = frozenset({"hooks", "config", "config.worktree", "modules"})
"""What in a workspace a person's own tools would run later. The sandbox holds the same; a test compares the two."""

_OF_EVERYBODY = _words("/etc /usr /bin /sbin /lib /lib64 /opt /var/spool /Library /System /Applications")
_STARTED_NAMES = frozenset(
    _words("""
    makefile gnumakefile justfile taskfile.yml taskfile.yaml rakefile gemfile vagrantfile procfile dockerfile
    docker-compose.yml docker-compose.yaml compose.yml compose.yaml package.json setup.py setup.cfg pyproject.toml
    conftest.py noxfile.py tox.ini build.rs cmakelists.txt build.gradle gruntfile.js gulpfile.js sitecustomize.py
    bashrc zshrc profile gitconfig vimrc crontab authorized_keys
    """)
)
_STARTED_FOLDERS = frozenset(_words("bin sbin launchagents launchdaemons autostart"))

# From the top of the name down, as they are compared.
_KNOWN_HOSTS = _words("""
    org.pypi org.pythonhosted.files org.npmjs.registry com.yarnpkg.registry io.crates io.crates.index
    io.crates.static org.golang.proxy org.golang.sum org.rubygems org.maven.apache.repo org.apache.maven.repo
    com.packagist.repo org.packagist.repo org.debian.deb org.debian.security com.ubuntu.archive
    com.ubuntu.security org.alpinelinux.dl-cdn com.github com.github.api com.github.codeload
    com.githubusercontent com.gitlab org.bitbucket org.codeberg ht.sr.git co.huggingface co.hf.cdn-lfs
    """)
KNOWN_HOSTS = frozenset(".".join(reversed(name.split("."))) for name in _KNOWN_HOSTS)
"""Package indexes and git hosts: commands reach them without a question. Names below them count too."""

_INNER_NAMES = ("localhost", "local", "internal", "home.arpa", "localdomain", "lan", "intranet", "corp", "home")
_TRANSLATED = tuple(ipaddress.ip_network(net) for net in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"))


@dataclass(frozen=True, slots=True)
class Grounds:
    """The places of one installation. All paths are real. `listed` are private addresses that may be reached."""

    home: Path
    user_home: Path
    runs_from: tuple[Path, ...] = ()
    """Folders that Hermes itself runs from."""
    listed: tuple[str, ...] = ()
    hosts: frozenset[str] = KNOWN_HOSTS

    def is_own(self, path: Path) -> bool:
        """Whether it is one of Hermes's own files; workspaces that it made are not."""
        return path.is_relative_to(self.home) and not path.is_relative_to(self.home / "workspaces")

    def is_secret(self, path: Path, workspace: Path) -> bool:
        """Whether keys, passwords or what a machine keeps from its users are there."""
        if any(path.is_relative_to(self.user_home / name) for name in _OF_A_HOME):
            return True
        if path.is_relative_to(workspace):
            return False
        return any(path.is_relative_to(name) for name in _OF_THE_SYSTEM) or not _ANYWHERE.isdisjoint(path.parts)

    def is_device(self, path: Path, workspace: Path) -> bool:
        """Whether it is no file but a device."""
        return path.is_relative_to("/dev") and not path.is_relative_to(workspace)

    def holds_secrets(self, folder: Path) -> bool:
        """Whether below a folder there are keys, passwords, or files of Hermes."""
        places = (self.home, *(self.user_home / name for name in _OF_A_HOME), *map(Path, _OF_THE_SYSTEM))
        return any(place.is_relative_to(folder) for place in places) or folder in _HOMES

    def is_kept(self, path: Path, workspace: Path) -> bool:
        """Whether a person's own tools, or Hermes, would run what is written there."""
        if any(path.is_relative_to(place) for place in self.runs_from):
            return True
        # Some file systems do not tell .git and .GIT apart.
        names = [name.casefold() for name in path.relative_to(workspace).parts]
        if names and (names[0] in KEPT_FOLDERS or names[0] in KEPT_FILES):
            return True
        after_git = [names[at + 1 : at + 2] for at, name in enumerate(names) if name == ".git"]
        return any(not name or name[0] in KEPT_OF_GIT for name in after_git)

    def is_started(self, path: Path) -> bool:
        """Whether a place outside the workspace is one that a person's own tools run or are set up by: what is hidden,
        what belongs to everybody on the machine, what builds are described in.
        """
        if any(path.is_relative_to(place) for place in _OF_EVERYBODY):
            return True
        own = self.home / "workspaces"
        names = [name.casefold() for name in (path.relative_to(own) if path.is_relative_to(own) else path).parts]
        is_hidden = any(name.startswith(".") for name in names)
        return is_hidden or not names or names[-1] in _STARTED_NAMES or not _STARTED_FOLDERS.isdisjoint(names)

    def is_public_reading(self, path: Path) -> bool:
        """Whether everybody on the machine may read it anyway, such as installed programs and their headers."""
        return any(path.is_relative_to(place) for place in _FOR_ALL_TO_READ)

    def is_known_host(self, host: str) -> bool:
        """Whether a host, or one it is below, is on the list."""
        labels = host.split(".")
        return any(".".join(labels[at:]) in self.hosts for at in range(len(labels)))

    def is_listed(self, host: str, port: int) -> bool:
        """Whether a private address was listed by the owner, as host:port or network:port."""
        return any(_matches(entry, host, port) for entry in self.listed)


def plain(host: str) -> str:
    """Return a host as it is compared: lower case, no brackets, no final dot."""
    return host.strip().lower().removeprefix("[").removesuffix("]").rstrip(".")


def is_private(host: str) -> bool:
    """Whether a plain host is no place on the open internet, or cannot be told from one that is not."""
    address = _address(host)
    if address is not None:
        return not _is_global(address)
    labels = host.split(".")
    is_name = all(label and label.isascii() and label.replace("-", "a").replace("_", "a").isalnum() for label in labels)
    # 0x7f.1, 127.1 and 2130706433 are numbers to some programs.
    looks_like_number = labels[-1].isdigit() or labels[-1].startswith("0x")
    if not is_name or len(labels) < 2 or looks_like_number:
        return True
    return any(host == name or host.endswith("." + name) for name in _INNER_NAMES)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_global(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return _is_global(address.ipv4_mapped)
        if any(address in network for network in _TRANSLATED):
            return False
    return address.is_global and not address.is_multicast


def _matches(entry: str, host: str, port: int) -> bool:
    place, _, wanted = entry.rpartition(":")
    if wanted not in ("*", str(port)):
        return False
    if "/" not in place:
        return plain(place) == host
    address = _address(host)
    return address is not None and address in ipaddress.ip_network(place.strip("[]"), strict=False)


def real(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Follow every link of some folders. Blocks for a moment."""
    return tuple(path.resolve() for path in paths)
