"""Dropping privileges: none is left in any thread, and none can be regained."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from seaway.adapters.privileges import find_account
from seaway.domain.errors import RejectedError
from tests.missing import skip_or_fail

START = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from seaway.adapters.privileges import drop_privileges, find_account, forbid_new_privileges
from seaway.adapters.privileges import read_status, threads
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, as root."""
    if os.geteuid():
        skip_or_fail(RuntimeError("takes root"))
    return subprocess.run(
        [sys.executable, "-c", START + script], capture_output=True, text=True, timeout=30, check=False
    )


def test_nothing_is_left_in_any_thread() -> None:
    """Every thread, including earlier ones, is unprivileged, has no capability, and can gain none."""
    ran = run("""
forbid_new_privileges()
pool = ThreadPoolExecutor(1)
pool.submit(int).result()
drop_privileges(find_account("daemon"))
seen = [read_status(each) for each in threads()]
account = find_account("daemon")
assert len(seen) == 2
for each in seen:
    assert {*each.uids} == {account.uid} and {*each.gids} == {account.gid} and each.groups == (), each
    assert not any(each.capabilities.values()) and each.no_new_privs, each
for barred in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: open("/etc/shadow")):
    try:
        barred()
    except PermissionError:
        continue
    sys.exit("not barred")
""")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_is_left_is_reported() -> None:
    """If a thread could still gain rights, an error is raised."""
    ran = run("""
pool = ThreadPoolExecutor(1)
pool.submit(int).result()
forbid_new_privileges()
drop_privileges(find_account("nobody"))
""")
    assert "privileges could not be dropped: programs that it starts can have more rights" in ran.stderr


def test_capabilities_without_root() -> None:
    """A process without root but with capabilities, as from systemd, loses them and keeps its user."""
    ran = run("""
import ctypes
libc = ctypes.CDLL(None)
libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
os.setgroups([])
os.setresgid(33, 33, 33)
os.setresuid(33, 33, 33)
both = 1 << 13
libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(both, both, both, 0, 0, 0))
libc.prctl(47, 2, 13, 0, 0)  # PR_CAP_AMBIENT_RAISE
assert read_status(next(iter(threads()))).capabilities["CapAmb"] == both
forbid_new_privileges()
drop_privileges(find_account("nobody"))
(now,) = map(read_status, threads())
assert {*now.uids} == {33}
assert not any(held for name, held in now.capabilities.items() if name != "CapBnd"), now
""")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_capabilities_of_other_threads_without_root() -> None:
    """Without root each thread must drop its own; a thread that does not is reported."""
    ran = run("""
import ctypes
libc = ctypes.CDLL(None)
libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
os.setgroups([])
os.setresgid(33, 33, 33)
os.setresuid(33, 33, 33)
both = 1 << 13 | 1 << 21
libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(both, both, both, 0, 0, 0))
for capability in (13, 21):
    libc.prctl(47, 2, capability, 0, 0)  # PR_CAP_AMBIENT_RAISE
forbid_new_privileges()
pool = ThreadPoolExecutor(1)
pool.submit(int).result()
try:
    drop_privileges(find_account("nobody"))
except Exception as error:
    print(error)
drop_privileges(find_account("nobody"), [lambda work: pool.submit(work).result()])
seen = [read_status(each) for each in threads()]
assert len(seen) == 2
assert not any(held for each in seen for name, held in each.capabilities.items() if name != "CapBnd"), seen
""")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "privileges could not be dropped: it has inheritable capabilities\n"


@pytest.mark.parametrize(
    ("user", "why"), [("root", "is root"), ("0", "is root"), ("nobody-of-the-kind", "not found on this machine")]
)
def test_users_to_go_on_as(user: str, why: str) -> None:
    """Only an existing user other than root is valid."""
    with pytest.raises(RejectedError, match=why):
        find_account(user)
