import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer import Abort

from seaway.cli.admin.network import read_network_file
from seaway.cli.jobs.file import TEXTS, Written, merged, option_of, pairs, read_jobs, written_jobs
from seaway.cli.jobs.submit import sorted_words
from seaway.domain.errors import RejectedError
from seaway.wire.job_in import JobIn

TWO = """\
# a comment
name: one
resources:
  gpus: 1
run:
  ports: [80, 81]
---
name: two
labels: {a: b}
"""


def file(folder: Path, text: str | bytes) -> str:
    """Write a job file."""
    path = folder / "job.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_each_document_is_a_job_that_knows_its_lines(tmp_path: Path) -> None:
    """Every field of every job of a file knows on which line it stands."""
    one, two = read_jobs(file(tmp_path, TWO))
    assert one.fields == {"name": "one", "resources": {"gpus": 1}, "run": {"ports": [80, 81]}}
    assert one.lines == {
        "": 2,
        "name": 2,
        "resources": 3,
        "resources.gpus": 4,
        "run": 5,
        "run.ports": 6,
        "run.ports[0]": 6,
        "run.ports[1]": 6,
    }
    assert (two.fields["labels"], two.lines["labels.a"]) == ({"a": "b"}, 9)


def test_numbers_are_texts_where_a_text_is_expected(tmp_path: Path) -> None:
    """A plain number, date or truth value of a text field is the text as written; other fields keep their types."""
    text = "labels: {v: 1.10}\nrun: {env: {A: 010, D: 2026-11-21, B: yes}, args: [1_000], ports: [80]}\nreplicas: 2\n"
    (job,) = read_jobs(file(tmp_path, text))
    assert job.fields == {
        "labels": {"v": "1.10"},
        "run": {"env": {"A": "010", "D": "2026-11-21", "B": "yes"}, "args": ["1_000"], "ports": [80]},
        "replicas": 2,
    }


def text_paths(schema: dict[str, Any], definitions: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield an example path of each text in a schema that takes no numbers."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    kinds = schema.get("anyOf", [])
    if schema.get("type") == "string":
        yield path
    if kinds and not any(each.get("type") in ("number", "integer") for each in kinds):
        for each in kinds:
            yield from text_paths(each, definitions, path)
    if "items" in schema:
        yield from text_paths(schema["items"], definitions, f"{path}[0]")
    for name, each in schema.get("properties", {}).items():
        yield from text_paths(each, definitions, f"{path}.{name}" if path else name)
    for each in (schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()):
        if isinstance(each, dict):
            yield from text_paths(each, definitions, f"{path}.any.name/x")


def test_all_texts_of_a_job_are_known() -> None:
    """The pattern of text fields matches each text of the schema of jobs, and no other field."""
    schema = JobIn.model_json_schema()
    paths = list(text_paths(schema, schema["$defs"]))
    assert {"name", "run.env.any.name/x", "run.args[0]", "placement.tolerations[0].key"} <= {*paths}
    assert [path for path in paths if not TEXTS.fullmatch(path)] == []
    for path in ("replicas", "run.ports[0]", "resources.gpus", "resources.memory", "expected_duration", "gang"):
        assert not TEXTS.fullmatch(path)


def test_json_is_a_job_file_too(tmp_path: Path) -> None:
    """Anything that programs write as JSON is read as well."""
    (job,) = read_jobs(file(tmp_path, '{"name": "x", "replicas": 2}'))
    assert job.fields == {"name": "x", "replicas": 2}


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("resources.gpus", "job.yaml:4:resources.gpus"),
        ("resources.cpu", "job.yaml:3:resources.cpu"),
        ("run.ports[1]", "job.yaml:6:run.ports[1]"),
        ("tenant", "job.yaml:2:tenant"),
        ("", "job.yaml:2"),
    ],
)
def test_an_error_says_where_in_the_file_it_is(tmp_path: Path, path: str, where: str) -> None:
    """An error names file, line and field; where the field is missing, the line of what should hold it."""
    job = read_jobs(file(tmp_path, TWO))[0]
    placed = job.placed(RejectedError("wrong", where=path, also=(RejectedError("too", where="name"),)))
    assert placed.where.endswith(where)
    assert placed.also[0].where.endswith("job.yaml:2:name")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no job"),
        ("---\n---\n# nothing\n", "no job"),
        ("- a\n", "job.yaml:1: must be a mapping"),
        ("name: x\n---\n3\n", "job.yaml:3: must be a mapping"),
        ("name: [\n", "job.yaml:2: this is not YAML"),
        ("name: x\nname: y\n", "job.yaml:2: the field 'name' is duplicated"),
        ("run: {image: a, image: b}\n", "job.yaml:1: the field 'image' is duplicated"),
        ("name: !!python/object:os.system x\n", "this is not YAML"),
        ("name: !!set {a}\n", "holds a set"),
        (b"\xff\xfe\xff", "UTF-8"),
        ("name: &a [*a]\n", "contains itself"),
        ("\n".join(f"f{n}: &f{n} [{', '.join([f'*f{n - 1}'] * 9) if n else 1}]" for n in range(9)), "more than"),
    ],
)
def test_what_is_no_job_file_is_reported_with_its_line(tmp_path: Path, text: str | bytes, says: str) -> None:
    """A file that cannot be read as jobs is refused in one line that says where."""
    with pytest.raises(RejectedError) as raised:
        read_jobs(file(tmp_path, text))
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(RejectedError, match=r"gone\.yaml: cannot be read: No such file"):
        read_jobs(str(tmp_path / "gone.yaml"))


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash reads standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"name: x\n")))
    assert read_jobs("-") == [Written({"name": "x"}, "stdin", {"": 1, "name": 1})]


def test_options_go_over_what_a_file_says(tmp_path: Path) -> None:
    """An option replaces the field of that name in every job, and nothing beside it."""
    one, two = written_jobs([file(tmp_path, TWO)], {"resources.gpus": 4, "priority": 2})
    assert one.fields["resources"] == {"gpus": 4}
    assert two.fields == {"name": "two", "labels": {"a": "b"}, "resources": {"gpus": 4}, "priority": 2}
    assert one.placed(RejectedError("wrong", where="resources.gpus")).where == "--gpus"


def test_options_alone_make_a_job() -> None:
    """Without a file the options are the job; without either it is reported what to give."""
    (job,) = written_jobs([], {"name": "x", "run.command": ["a"]})
    assert job.fields == {"name": "x", "run": {"command": ["a"]}}
    assert job.placed(RejectedError("wrong", where="gateway")).where == "gateway"
    with pytest.raises(RejectedError, match="no job given"):
        written_jobs([], {})


def test_options_are_named_as_they_are_typed() -> None:
    """A field's option has its name, but for those that go by another."""
    assert [option_of(path) for path in ("resources.gpu_memory", "placement.clusters", "run.command", "labels")] == [
        "--gpu-memory",
        "--cluster",
        "COMMAND",
        "--label",
    ]


def test_pairs_are_taken_apart_at_the_first_sign() -> None:
    """NAME=VALUE may hold further signs in its value."""
    assert pairs(["A=b=c", "D="], "--env") == {"A": "b=c", "D": ""}
    assert pairs(None, "--env") is None
    with pytest.raises(RejectedError, match="--env: 'A' has no '='"):
        pairs(["A"], "--env")


def test_merging_replaces_lists_and_joins_mappings() -> None:
    """Anything that is given goes over what there is, as deep as both are mappings."""
    assert merged({"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"c": [2]}, "d": {"e": 1}}) == {
        "a": {"b": 1, "c": [2]},
        "d": {"e": 1},
    }


def test_a_network_may_have_more_fields_than_a_job(tmp_path: Path) -> None:
    """The paths of every pair of a hundred gateways are 130,000 fields."""
    path = file(tmp_path, f"paths: {[1] * 60_000}")
    assert len(read_network_file(path).fields["paths"]) == 60_000
    with pytest.raises(RejectedError, match="has more than 50000 values"):
        read_jobs(path)


@pytest.mark.parametrize(
    ("words", "after", "files", "command"),
    [
        (["job.yaml"], 0, ["job.yaml"], []),
        (["a.yml", "b.yaml", "python", "x"], 2, ["a.yml", "b.yaml"], ["python", "x"]),
        (["python", "-c", "1"], 0, [], ["python", "-c", "1"]),
        (["python", "train.py"], 2, [], ["python", "train.py"]),
        (["-"], 0, ["-"], []),
        (["./run.sh"], 1, [], ["./run.sh"]),
    ],
)
def test_words_are_job_files_or_the_command(words: list[str], after: int, files: list[str], command: list[str]) -> None:
    """YAML files before two dashes are job files. All words after the dashes, or all others, are the command."""
    assert sorted_words(words, after) == (files, command)


@pytest.mark.parametrize(("words", "after"), [(["job.yaml"], 1), (["FILE.sh"], 0), (["FILE.sh", "x"], 0)])
def test_a_file_as_the_command_is_not_run_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], after: int
) -> None:
    """A local script or job file as the command is asked about; without a terminal it is an error with a hint."""
    script = tmp_path / "FILE.sh"
    script.write_text("true\n")
    given = [str(script) if each == script.name else each for each in words]
    with pytest.raises(RejectedError, match=r"content is not sent; .*seaway submit"):
        sorted_words(given, after)
    monkeypatch.setattr("sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda _: True})("n\n"))
    with pytest.raises(Abort):
        sorted_words(given, after)
    monkeypatch.setattr("sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda _: True})("y\n"))
    assert sorted_words(given, after) == ([], given)
