"""Server and token of the client, with the source of each setting."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import urlsplit

import orjson

from seaway.domain.errors import RejectedError, UnavailableError

EXAMPLE = "http://127.0.0.1:8080"
NO_SERVER = (
    "no server: none runs here, and none is set; start one with `seaway up`, or set one with --server URL, "
    "SEAWAY_SERVER or `seaway --server URL login`"
)
TOKEN_FILE = "admin-token"
"""File in the data folder with the first token of its server."""
SERVER_FILE = "server.json"
"""File in the data folder with ``{"url": ...}`` of its server."""
PROFILES_FILE = "profiles.toml"
PROFILE_KEYS = ("server", "token", "ca_file")

VISIBLE = re.compile(r"[\x21-\x7e]+")
"""Characters of a token. Others are not valid in a header."""


@dataclass(frozen=True, slots=True)
class Target:
    """Server and credentials.

    Attributes
    ----------
    server
        URL without a slash at the end.
    token
        Bearer token; empty for none.
    ca_file
        Certificates to trust instead of the system's; empty for those.
    profile
        Name of the profile; empty for none.
    server_from, token_from
        Sources of both, for people.
    """

    server: str
    token: str = field(default="", repr=False)
    ca_file: str = ""
    profile: str = ""
    server_from: str = "argument"
    token_from: str = ""

    def __post_init__(self) -> None:
        """Check values that would otherwise fail later, or reveal the token in an error."""
        parts = urlsplit(self.server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            where = self.server_from if self.server_from != "argument" else "server"
            raise RejectedError(f"{self.server!r} is not a URL of a server, like {EXAMPLE}", where=where)
        if self.token and not VISIBLE.fullmatch(self.token):
            raise RejectedError("the token contains invalid characters", where=self.token_from)

    @property
    def loopback(self) -> bool:
        """True if the server is on this machine."""
        return is_loopback(urlsplit(self.server).hostname or "")

    @property
    def exposed(self) -> bool:
        """True if the token would cross a network without encryption."""
        return bool(self.token) and not self.loopback and self.server.startswith("http:")

    @classmethod
    def find(cls, server: str | None = None, token: str | None = None, profile: str | None = None) -> Target:
        """Find a server and a token.

        The server: the argument, ``SEAWAY_SERVER``, the profile, the local server's URL file. The token:
        the argument, ``SEAWAY_TOKEN``, the profile, the local server's token file. A profile's token is sent to the
        profile's server only, and the local one to the local server only. ``SEAWAY_DATA`` chooses the local server, so
        the default profile of the file does not apply then.

        Parameters
        ----------
        server, token
            Given values; None to continue the search.
        profile
            Name of a profile; None for ``SEAWAY_PROFILE``, or the default one of the file.

        Raises
        ------
        RejectedError
            When the profile is missing, its file is invalid, or the server is no URL.
        UnavailableError
            When there is no server.
        """
        name, chosen = find_profile(profile)
        local = local_server()
        ways = [
            (server, "argument"),
            (os.environ.get("SEAWAY_SERVER"), "SEAWAY_SERVER"),
            (chosen.get("server"), f"profile {name}"),
            (local, str(data_folder() / SERVER_FILE)),
        ]
        url, url_from = next(((_plain(value), says) for value, says in ways if value), ("", ""))
        if not url:
            raise UnavailableError(NO_SERVER)
        secrets = [
            (token, "argument"),
            (os.environ.get("SEAWAY_TOKEN"), "SEAWAY_TOKEN"),
            (chosen.get("token") if _plain(chosen.get("server") or url) == url else None, f"profile {name}"),
            (local_token() if url == local else None, str(data_folder() / TOKEN_FILE)),
        ]
        secret, secret_from = next(((value, says) for value, says in secrets if value), ("", ""))
        ca_file = os.environ.get("SEAWAY_CA_FILE") or chosen.get("ca_file") or ""
        return cls(url, secret.strip(), ca_file, name, url_from, secret_from)


def data_folder() -> Path:
    """Return the default data folder of a server of this user; it need not exist."""
    given = os.environ.get("SEAWAY_DATA")
    return Path(given) if given else _home("XDG_DATA_HOME", ".local/share") / "seaway"


def found_by_commands(folder: Path) -> str:
    """Return the end of a sentence about the token in a data folder: how commands on this machine find it."""
    if folder.absolute() == data_folder().absolute():
        return "; commands on this machine find it there."
    return (
        f".\nCommands on this machine find server and token after: export SEAWAY_DATA={quote(str(folder.absolute()))}"
    )


def profiles_file() -> Path:
    """Return the path of the profile file; it need not exist."""
    return _home("XDG_CONFIG_HOME", ".config") / "seaway" / PROFILES_FILE


def local_server() -> str:
    """Return the URL of this user's own server; empty if none has run."""
    try:
        url = orjson.loads((data_folder() / SERVER_FILE).read_bytes()).get("url", "")
    except (OSError, ValueError, AttributeError):
        return ""
    return _plain(url) if isinstance(url, str) else ""


def local_token() -> str:
    """Return the token of this user's own server; empty if there is none."""
    try:
        return (data_folder() / TOKEN_FILE).read_text().strip()
    except (OSError, UnicodeError):
        return ""


def read_profiles() -> dict[str, Any]:
    """Read the profile file; empty if there is none.

    Raises
    ------
    RejectedError
        When it is invalid.
    """
    path = profiles_file()
    if not path.exists():
        return {}
    import tomllib  # slow to import

    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise RejectedError(f"cannot be read: {error}", where=str(path)) from None


def find_profile(name: str | None) -> tuple[str, dict[str, str]]:
    """Return a profile and its name; both empty if none is requested.

    Raises
    ------
    RejectedError
        When the profile is missing or has unknown settings. A fallback would send requests for another server to this
        machine's.
    """
    read, file = read_profiles(), str(profiles_file())
    default = "" if os.environ.get("SEAWAY_DATA") else read.get("default")
    wanted = name or os.environ.get("SEAWAY_PROFILE") or default or ""
    if not wanted:
        return "", {}
    profiles = read.get("profiles", {})
    if not isinstance(profiles, dict) or wanted not in profiles:
        names = ", ".join(sorted(profiles)) if isinstance(profiles, dict) and profiles else "none"
        raise RejectedError(f"profile {wanted!r} not found; available: {names}", where=file)
    profile = profiles[wanted]
    if not isinstance(profile, dict):
        raise RejectedError(f"profile {wanted!r} must be a table, [profiles.{wanted}]", where=file)
    for key, value in profile.items():
        if key not in PROFILE_KEYS:
            raise RejectedError(
                f"profile {wanted!r}: unknown {key!r}; available: {', '.join(PROFILE_KEYS)}", where=file
            )
        if not isinstance(value, str):
            raise RejectedError(f"profile {wanted!r}: {key} must be text", where=file)
    return str(wanted), profile


def is_loopback(host: str) -> bool:
    """Report whether a host name or address belongs to this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _plain(url: str) -> str:
    return url.strip().rstrip("/")


def _home(variable: str, otherwise: str) -> Path:
    given = os.environ.get(variable)
    return Path(given) if given else Path.home() / otherwise
