"""Real database servers for tests: Debian's, in temporary folders, on the loopback interface.

As root, a server runs as the user that its package created. `Server.stop` and `Server.start` may be called any number
of times; the data stays until `Server.remove`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers.missing import MissingError


def free_port() -> int:
    """Return an unused port of the loopback interface."""
    with socket.socket() as admission:
        admission.bind(("127.0.0.1", 0))
        return int(admission.getsockname()[1])


START_S = 60
"""Time limit for the start of a server, seconds."""


class Server(ABC):
    """A database server of its own."""

    package = ""
    user = ""

    def __init__(self) -> None:
        self._programs = self._find()
        self.folder = Path(tempfile.mkdtemp(prefix="seaway-database-"))
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.data.mkdir(mode=0o700)
        self._owner = self._user()
        if self._owner:
            shutil.chown(self.data, self._owner)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0
        self._prepare()
        self.start()

    @abstractmethod
    def _find(self) -> dict[str, str]:
        """Return the paths of the programs by name."""

    @abstractmethod
    def _prepare(self) -> None:
        """Fill the data folder."""

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""

    @abstractmethod
    def _ask(self, statement: str) -> list[str]:
        """Return the command that runs one statement."""

    @abstractmethod
    def _url(self, name: str) -> str:
        """Return the URL of a database of the server."""

    def start(self) -> None:
        """Start, and wait until the server answers queries.

        Raises
        ------
        MissingError
            If it does not start; with the end of its log.
        """
        log = self.folder / "log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=out, stderr=out, user=self._owner, cwd=self.data
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise MissingError(f"{self.package} does not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop immediately, as when the power fails."""
        if self._process is not None:
            self._process.send_signal(self._last_signal())
            self._process.wait(START_S)
            self._process = None

    def new_database(self) -> str:
        """Create an empty database; return its URL."""
        self._count += 1
        name = f"seaway{self._count}"
        self._run(self._ask(f"CREATE DATABASE {name}"))
        return self._url(name)

    def remove(self) -> None:
        """Stop, and remove all data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        done = subprocess.run(self._ask("SELECT 1"), capture_output=True, check=False, user=self._owner, cwd="/")
        return done.returncode == 0

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(command, capture_output=True, check=False, user=self._owner, cwd="/")
        if done.returncode:
            raise MissingError(f"{command[0]} failed: {done.stderr.decode(errors='replace')[-2000:]}")

    def _last_signal(self) -> signal.Signals:
        return signal.SIGKILL

    def _user(self) -> str | None:
        """Return the user that it runs as; None for the user of the tests."""
        if os.geteuid() != 0:
            return None
        try:
            return pwd.getpwnam(self.user).pw_name
        except KeyError:
            raise MissingError(f"user {self.user} not found: apt-get install {self.package}") from None

    def _require(self, name: str, *folders: str) -> str:
        found = shutil.which(name, path=os.pathsep.join([*folders, os.environ.get("PATH", ""), "/usr/sbin"]))
        if found is None:
            raise MissingError(f"{name} is not installed: apt-get install {self.package}")
        return found


class MariaDb(Server):
    """A MariaDB server with one user, which has a password."""

    package = "mariadb-server"
    user = "mysql"

    def _find(self) -> dict[str, str]:
        return {name: self._require(name) for name in ("mariadbd", "mariadb-install-db", "mariadb")}

    def _prepare(self) -> None:
        install = [self._programs["mariadb-install-db"], "--no-defaults", f"--datadir={self.data}"]
        self._run([*install, "--auth-root-authentication-method=normal", "--skip-test-db"])
        self.start()
        self._run(self._ask("CREATE USER seaway@'%' IDENTIFIED BY 's3cret'; GRANT ALL ON *.* TO seaway@'%'"))
        self.stop()

    def _command(self) -> list[str]:
        options = [
            f"--datadir={self.data}",
            f"--tmpdir={self.data}",
            f"--socket={self.data}/socket",
            f"--port={self.port}",
        ]
        options += ["--bind-address=127.0.0.1", "--skip-name-resolve", f"--pid-file={self.data}/pid"]
        options += ["--innodb-buffer-pool-size=64M", "--debug-no-sync", "--innodb-flush-method=nosync"]
        return [self._programs["mariadbd"], "--no-defaults", *options, "--innodb-flush-log-at-trx-commit=2"]

    def _ask(self, statement: str) -> list[str]:
        login = ["--no-defaults", f"--socket={self.data}/socket", "--user=root"]
        return [self._programs["mariadb"], *login, "--execute", statement]

    def _url(self, name: str) -> str:
        return f"mariadb://seaway:s3cret@127.0.0.1:{self.port}/{name}"


class PostgreSql(Server):
    """A PostgreSQL server with one user, which has a password."""

    package = "postgresql"
    user = "postgres"

    def _find(self) -> dict[str, str]:
        newest_first = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        return {name: self._require(name, *map(str, newest_first)) for name in ("initdb", "postgres", "psql")}

    def _prepare(self) -> None:
        secret = self.folder / "secret"
        secret.write_text("s3cret\n")
        options = ["--username=seaway", f"--pwfile={secret}", "--auth=scram-sha-256", "--encoding=UTF8"]
        self._run([self._programs["initdb"], f"--pgdata={self.data}", *options, "--no-locale"])

    def _command(self) -> list[str]:
        settings = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"]
        return [self._programs["postgres"], "-D", str(self.data), "-p", str(self.port), *settings]

    def _ask(self, statement: str) -> list[str]:
        return [self._programs["psql"], self._url("postgres"), "--no-psqlrc", "--quiet", "--command", statement]

    def _url(self, name: str) -> str:
        return f"postgresql://seaway:s3cret@127.0.0.1:{self.port}/{name}"

    def _last_signal(self) -> signal.Signals:
        return signal.SIGQUIT


SERVERS: dict[str, type[Server]] = {"mariadb": MariaDb, "postgresql": PostgreSql}


@contextmanager
def servers() -> Iterator[Callable[[str], Server]]:
    """Yield a function that returns the server of a kind, started on first use.

    It raises `MissingError` where the server is not installed.
    """
    running: dict[str, Server] = {}

    def give(name: str) -> Server:
        if name not in running:
            running[name] = SERVERS[name]()
        return running[name]

    try:
        yield give
    finally:
        for server in running.values():
            server.remove()
