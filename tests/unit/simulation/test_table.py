from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError
from seaway.simulation.table import CsvRow, read_table


def written(tmp_path: Path, text: str) -> Path:
    """Write a table and return where it is."""
    path = tmp_path / "some.csv"
    path.write_text(text, encoding="utf-8")
    return path


def rejection(path: Path, *needs: str) -> RejectedError:
    """Return the error with which a table is rejected."""
    with pytest.raises(RejectedError) as caught:
        read_table(path, needs)
    return caught.value


def line(**cells: str) -> CsvRow:
    """Return line 17 of a table."""
    return CsvRow("jobs.csv", 17, cells)


def test_cells_are_found_by_column_and_know_their_line(tmp_path: Path) -> None:
    """A table gives its cells by column, without the blanks around them, and skips empty lines."""
    table = read_table(written(tmp_path, "\ufeffname, gpu\n\n a ,1\nb,2\n"), ["name"])
    assert table.columns == ("name", "gpu")
    assert [(entry.number, entry.text("name"), entry.whole("gpu")) for entry in table] == [
        (3, "a", 1),
        (4, "b", 2),
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "1"),
        ("name,gpu\n", "2:name"),
        ("gpu\n1\n", "1:name"),
        ("name,name\na,b\n", "1:name"),
        ("name,gpu\na\n", "2:gpu"),
        ("name,gpu\na,1,2\n", "2:3"),
        ('name,gpu\n"a,1\n', "2"),
    ],
)
def test_a_broken_table_is_rejected_with_file_line_and_column(tmp_path: Path, text: str, where: str) -> None:
    """Each way in which a table can be broken names file, line and, where there is one, column."""
    path = written(tmp_path, text)
    assert rejection(path, "name").where == f"{path}:{where}"


def test_a_file_that_cannot_be_read_is_rejected_by_name(tmp_path: Path) -> None:
    """A file that is not there, or is not text, is the user's to mend."""
    assert rejection(tmp_path / "none.csv").message == "cannot be read: No such file or directory"
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    assert rejection(binary).message == "is not text in UTF-8"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-5", "-5 is negative"),
        ("many", "'many' is not a number"),
        ("nan", "'nan' is not a number"),
        ("inf", "'inf' is not a number"),
        ("1.5", "'1.5' is not a whole number"),
        ("", "is empty, but a number is needed"),
        ("2147483648", "2147483648 is above the maximum of 2147483647"),
        ("1e999999999", "1e999999999 is above the maximum of 2147483647"),
    ],
)
def test_a_cell_that_is_no_whole_number_is_rejected(text: str, said: str) -> None:
    """A resource is a whole number from 0 up that the engine can hold."""
    with pytest.raises(RejectedError, match="gpu_milli") as caught:
        line(gpu_milli=text).whole("gpu_milli")
    assert str(caught.value) == f"jobs.csv:17:gpu_milli: {said}"


def test_numbers_may_be_written_with_a_point_or_left_out() -> None:
    """A whole number may end in .0; where a default is given, an empty cell or no column means it."""
    assert line(gpu="8.0").whole("gpu") == 8
    assert line(gpu="").whole("gpu", 1) == line().whole("gpu", 1) == 1


def test_scaling_is_exact_in_decimals() -> None:
    """A loss of 0.029 is 29,000 parts per million, whatever a float makes of it."""
    assert line(loss="0.029").scaled("loss", 1_000_000) == 29_000
    assert line().scaled("loss", 1_000_000) == 0


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("Yes", True), ("0", False), ("", False)])
def test_flags_are_words_or_digits(text: str, flag: bool) -> None:
    """A flag says true, yes or 1, or false, no, 0 or nothing."""
    assert line(gang=text).flag("gang") is flag


def test_a_flag_that_says_neither_is_rejected() -> None:
    """A flag that cannot be understood is not taken for no."""
    with pytest.raises(RejectedError, match=r"jobs\.csv:17:gang: 'maybe' is not true or false"):
        line(gang="maybe").flag("gang")
