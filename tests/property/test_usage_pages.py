"""Reading an exporter's page never raises, and its values are always possible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.kubernetes.usage.parse import FIGURES, MAX_BYTES, WHOLE_MILLI, Reading, read_page

LABELS = sorted(
    {
        label
        for each in FIGURES.values()
        for label in (*each.labels.uuids, each.labels.part, each.labels.namespace, each.labels.pod)
        if label
    }
)
WORDS = st.sampled_from(["", "GPU-0", "GPU-1", "a", "0", '\\"', "\\\\", "}", "{", ",", "=", " ", "\\", '"', "é"])
VALUES = st.sampled_from(
    ["0", "1", "99.5", "1e9", "NaN", "-Inf", "+Inf", "-1", "0x10", "1_0", "", "1 1700000000000", "1 # {}"]
)
NAMES = st.sampled_from([*FIGURES, "up", "# TYPE", "# HELP", ""])
TEXT = st.text(alphabet=' \t\r{}",=\\#_\x00\x85aUD01.-+e', max_size=40)


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Generate a line that is nearly valid, or not."""
    labels = draw(st.lists(st.tuples(st.sampled_from([*LABELS, "__name__", "ctrname"]), WORDS), max_size=7))
    inside = ",".join(f'{name}="{value}"' for name, value in labels)
    shape = draw(
        st.sampled_from(["{name}{{{inside}}} {value}", "{name} {{{inside}}}{value}", "{name}{value}{{{inside}"])
    )
    return shape.format(name=draw(NAMES), inside=inside, value=draw(VALUES)) + draw(TEXT)


def possible(read: Reading) -> bool:
    """Report whether all values are possible."""
    every = [*read.devices.values(), *(each for there in read.containers.values() for each in there.values())]
    return all(
        (each.memory_bytes is None or 0 <= each.memory_bytes <= MAX_BYTES)
        and (each.core_milli is None or 0 <= each.core_milli <= WHOLE_MILLI)
        for each in every
    )


@given(st.lists(lines(), max_size=8))
def test_pages_that_are_nearly_right(page: list[str]) -> None:
    """Labels, values and brackets anywhere do no harm, and no device is without a name."""
    read = read_page("\n".join(page).encode())
    assert possible(read)
    assert "" not in read.devices
    assert all(all((*held, *there)) for held, there in read.containers.items())


@given(st.sampled_from(sorted(FIGURES)), st.binary(max_size=200))
def test_any_bytes_after_a_name_that_counts(name: str, rest: bytes) -> None:
    """Bytes that are not text do no harm."""
    assert possible(read_page(name.encode() + rest))


@given(st.sampled_from(sorted(FIGURES)), st.integers(0, 100), st.integers(0, 1))
def test_what_is_written_well_is_read(name: str, value: int, share: int) -> None:
    """A value on a page by itself reads back unchanged."""
    figure, names = FIGURES[name], FIGURES[name].labels
    scale = share if figure.times == WHOLE_MILLI else value
    holder = {each: each for each in (names.namespace, names.pod, names.container) if each}
    labels = ",".join(f'{key}="{text}"' for key, text in {names.uuids[0]: "GPU-0", **holder}.items())
    read = read_page(f"{name}{{{labels}}} {scale}\n".encode())
    (used,) = read.containers["GPU-0", names.namespace, names.pod].values() if holder else read.devices.values()
    assert scale * figure.times in (used.memory_bytes, used.core_milli)
    assert read.broken == 0
