import json
from pathlib import Path

import pytest

from seaway import Client
from seaway.client.config import Target, data_folder, found_by_commands, profiles_file
from seaway.domain.errors import RejectedError, UnavailableError


def note_local(url: str = "http://127.0.0.1:8080", token: str = "sw_l_local") -> None:
    """Leave what a server on this machine leaves."""
    data_folder().mkdir(parents=True)
    (data_folder() / "server.json").write_text(json.dumps({"url": url}))
    (data_folder() / "admin-token").write_text(token + "\n")


def note_profile() -> None:
    """Leave a profile file."""
    profiles_file().parent.mkdir(parents=True)
    profiles_file().write_text(
        'default = "work"\n[profiles.work]\nserver = "https://work.example"\ntoken = "sw_w_work"\n'
        '[profiles.other]\nserver = "https://other.example/"\nca_file = "/ca.pem"\n'
    )


def test_without_any_setting_there_is_no_server() -> None:
    """With nothing set, no address is guessed."""
    with pytest.raises(UnavailableError, match="no server"):
        Target.find()


def test_the_local_server_is_found_with_its_token() -> None:
    """Anything that `seaway up` notes in its data folder is enough to speak to it."""
    note_local("http://127.0.0.1:9000")
    found = Target.find()
    assert (found.server, found.token) == ("http://127.0.0.1:9000", "sw_l_local")
    assert found.token_from.endswith("admin-token")


def test_a_server_with_another_data_folder_says_what_commands_need(tmp_path: Path) -> None:
    """Commands look in one data folder, so a server with another one names the variable to set."""
    assert found_by_commands(data_folder()) == "; commands on this machine find it there."
    assert found_by_commands(tmp_path / "a b").endswith(f"export SEAWAY_DATA='{tmp_path}/a b'")


def test_arguments_go_before_the_environment_before_the_profile_before_the_local_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The nearer a setting is to the command, the more it counts."""
    note_local()
    assert Target.find().token == "sw_l_local"
    note_profile()
    assert (Target.find().server, Target.find().token) == ("https://work.example", "sw_w_work")
    monkeypatch.setenv("SEAWAY_SERVER", "https://env.example")
    monkeypatch.setenv("SEAWAY_TOKEN", "sw_e_env")
    assert (Target.find().server, Target.find().token) == ("https://env.example", "sw_e_env")
    found = Target.find("https://arg.example", "sw_a_arg")
    assert (found.server, found.token, found.server_from) == ("https://arg.example", "sw_a_arg", "argument")


def test_a_stored_token_goes_to_its_own_server_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a profile's token nor the local server's is sent to a server that was named otherwise."""
    note_local()
    note_profile()
    assert Target.find("https://stranger.example").token == ""
    monkeypatch.setenv("SEAWAY_SERVER", "https://stranger.example")
    assert Target.find().token == ""
    assert Target.find("https://work.example/").token == "sw_w_work"


def test_a_profile_is_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEAWAY_PROFILE and the argument choose among the profiles of the file."""
    note_profile()
    monkeypatch.setenv("SEAWAY_PROFILE", "other")
    found = Target.find()
    assert (found.server, found.ca_file, found.profile) == ("https://other.example", "/ca.pem", "other")
    assert Target.find(profile="work").server == "https://work.example"


@pytest.mark.parametrize(
    "text",
    [
        "[profiles",
        'default = "gone"\n',
        "\x00",
        'default = "a"\nprofiles = 5\n',
        'default = "a"\n[profiles]\na = 5\n',
        'default = "a"\n[profiles.a]\nserver = 5\n',
        'default = "a"\n[profiles.a]\nsever = "https://work.example"\n',
    ],
)
def test_a_broken_profile_file_is_reported(text: str) -> None:
    """A profile file that is not understood, or names what is not there, is named in the error, and nothing is sent."""
    profiles_file().parent.mkdir(parents=True)
    profiles_file().write_text(text)
    with pytest.raises(RejectedError, match=r"profiles\.toml"):
        Target.find()


@pytest.mark.parametrize("server", ["localhost:8080", "ftp://x", "http://", "x"])
def test_what_is_no_url_is_refused(server: str) -> None:
    """A server without scheme or host is refused before anything is sent."""
    with pytest.raises(RejectedError, match=r"^server: .* is not a URL"):
        Target.find(server)


def test_a_token_is_shown_nowhere() -> None:
    """Neither what is found nor a client shows its token, nor does the error about a broken one."""
    found = Target.find("http://127.0.0.1:1", "sw_1_secret")
    with Client("http://127.0.0.1:1", "sw_1_secret") as client:
        assert "secret" not in repr(found) + repr(client) + str(client)
    with pytest.raises(RejectedError) as refused:
        Target.find("http://127.0.0.1:1", "sw_1_secret\nx")
    assert "secret" not in str(refused.value)


def test_a_token_in_the_clear_is_warned_about_once() -> None:
    """Plain HTTP to another machine is warned about the first time, and not on loopback."""
    with pytest.warns(UserWarning, match="without encryption"), Client("http://far.example", "sw_1_x"):
        pass
    with Client("http://far.example", "sw_1_x"), Client("http://127.0.0.1:1", "sw_1_x"), Client("http://[::1]:1", "x"):
        pass


def test_certificates_that_cannot_be_read_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of certificates that is not there is named before anything is sent."""
    monkeypatch.setenv("SEAWAY_CA_FILE", str(tmp_path / "gone.pem"))
    with pytest.raises(RejectedError, match=r"gone\.pem"):
        Client("https://far.example", "x")
