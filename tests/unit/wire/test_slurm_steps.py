"""Steps of batch scripts of Slurm: the text of scripts, what programs see, and what is refused."""

import re
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.errors import RejectedError
from seaway.wire.job_imports.converted import Converted, Result
from seaway.wire.job_imports.files import convert_script

ONE = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks=1 --gpus=2\n"
FOUR = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks-per-node=4 --gpus-per-node=4\n"
TWO_NODES = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=1\n"


def converted(text: str) -> Converted:
    """Convert a script."""
    found = convert_script(text, "try.sbatch")
    assert found is not None
    return found


def script_of(job: Converted) -> str:
    """Return the script of a converted job, without the escapes of Kubernetes."""
    return str(job.fields["run"]["command"][-2]).replace("$$", "$")


def errors_of(text: str) -> list[str]:
    """Return the fields that a script is refused for, with their lines."""
    with pytest.raises(RejectedError) as raised:
        convert_script(text, "try.sbatch")
    return [each.where.split(":", 1)[1] for each in (raised.value, *raised.value.also)]


@pytest.mark.parametrize(
    ("head", "body", "result"),
    [
        (ONE, 'echo "now: srun -N 1"\nroot=/data/"all of it"\nsrun -N 1 ./fit "$root"\n',
         'echo "now: srun -N 1"\nroot=/data/"all of it"\n./fit "$root"\n'),
        (ONE, "printf 'srun --label=\"x\"\\n'\nrm -r \"$a\"\n", "printf 'srun --label=\"x\"\\n'\nrm -r \"$a\"\n"),
        (ONE, "# srun -n 4 ./old\nsrun ./new # with srun\n", "# srun -n 4 ./old\n./new # with srun\n"),
        (ONE, "tool=./sim\necho go srun ${tool}\nsrun -n1 ${tool} 'a b'\n",
         "tool=./sim\necho go srun ${tool}\n${tool} 'a b'\n"),
        (ONE, 'flags="--label --unbuffered"\nsrun $flags ./fit\n', 'flags="--label --unbuffered"\n./fit\n'),
        (ONE, "cmd=(./fit --lr 1)\nsrun -l \"${cmd[@]}\"\n", "cmd=(./fit --lr 1)\n\"${cmd[@]}\"\n"),
        (ONE, "srun \\\n  --label \\\n  ./fit \\\n  --lr 1\n", "./fit \\\n  --lr 1\n"),
        (ONE, "srun -lu --ntasks=$SLURM_NTASKS ./fit\n", "./fit\n"),
        (ONE, "srun -n ${SLURM_NTASKS:-1} -- ./fit -n 3\n", "./fit -n 3\n"),
        (ONE, "x=$(srun hostname)\n", "x=$(hostname)\n"),
        (ONE, "x=`srun hostname`\n", "x=`hostname`\n"),
        (ONE, "f() {\n  srun ./a\n}\nf\n", "f() {\n  ./a\n}\nf\n"),
        (ONE, "case $1 in\n  srun) srun ./a ;;\nesac\n", "case $1 in\n  srun) ./a ;;\nesac\n"),
        (ONE, "if ! srun ./a; then exit 1; fi\n", "if ! ./a; then exit 1; fi\n"),
        (ONE, "(srun ./a) 2>&1 | tee log\n", "(./a) 2>&1 | tee log\n"),
        (ONE, "srun ./a | srun ./b && srun ./c\n", "./a | ./b && ./c\n"),
        (ONE, "A=1 srun -l ./a\n", "A=1 ./a\n"),
        (ONE, "./a\n\\srun -l ./b\n\\srun -o x ./c\n", "./a\n./b\n>x 2>&1 ./c\n"),
        (ONE, "/opt/slurm/bin/srun -l ./a\n", "./a\n"),
        (ONE, "timeout 60 srun -l ./a\nexec srun ./b\n", "timeout 60 ./a\nexec ./b\n"),
        (ONE, "srun $(which python) a.py\n", "$(which python) a.py\n"),
        (ONE, "srun $HOME/bin/a\nsrun \"$PWD/b\"\n", "$HOME/bin/a\n\"$PWD/b\"\n"),
        (ONE, "srun --jobid=${SLURM_JOBID} ./a\n", "./a\n"),
        (ONE, "srun -o out.txt ./a\nwc out.txt\n", ">out.txt 2>&1 ./a\nwc out.txt\n"),
        (ONE, 'srun -o "$d/x" -e none --open-mode=append ./a\n', '>>"$d/x" 2>>/dev/null ./a\n'),
        (ONE, "which srun || echo no srun\n[ -x /bin/srun ] && srun ./a\n",
         "which srun || echo no srun\n[ -x /bin/srun ] && ./a\n"),
        (FOUR, "srun -l ./a; time srun ./b\n", "srun ./a; time srun ./b\n"),
        (FOUR, "/usr/bin/srun ./a\n", "srun ./a\n"),
        (TWO_NODES, "first=$(scontrol show hostname $SLURM_NODELIST | head -1)\nsrun ./a $first\n",
         'first=$(echo "${MASTER_ADDR:-$HOSTNAME}")\n./a $first\n'),
    ],
)  # fmt: skip
def test_only_the_calls_of_srun_change(head: str, body: str, result: str) -> None:
    """A call becomes its program, also in functions, pipes and substitutions. All other text stays."""
    text = script_of(converted(head + body))
    assert text.endswith(head + result)


@pytest.mark.parametrize(
    ("head", "body", "errors"),
    [
        (ONE, "srun $FLAGS ./a\n", ["3:srun"]),
        (ONE, 'srun "$@"\n', ["3:srun"]),
        (ONE, 'if true; then f="-l"; fi\nsrun $f ./a\n', ["4:srun"]),
        (ONE, 'for f in -l -u; do srun $f ./a; done\n', ["3:srun"]),
        (ONE, 'srun $(cat flags) ./a\n', ["3:srun"]),
        (ONE, "run=(srun -l)\n\"${run[@]}\" ./a\n", ["3:srun"]),
        (ONE, 'run="srun -l"\n$run ./a\n', ["3:srun"]),
        (ONE, 'run=srun\n$run ./a\n', ["3:srun"]),
        (ONE, "${RUN:-srun} ./a\n", ["3:srun"]),
        (ONE, "$(which srun) ./a\n", ["3:srun"]),
        (ONE, '"`command -v srun`" ./a\n', ["3:srun"]),
        (ONE, "run=$(command -v srun 2>/dev/null)\n$run ./a\n", ["3:srun"]),
        (ONE, "for l in srun env; do $l ./a; done\n", ["3:srun"]),
        (ONE, "bash -c 'cd x && srun ./a'\n", ["3:srun"]),
        (ONE, 'eval "srun ./a"\n', ["3:srun"]),
        (ONE, "trap 'srun ./save' TERM\n", ["3:srun"]),
        (ONE, "alias go='srun -l'\n", ["3:srun"]),
        (ONE, "bash <<END\nsrun ./a\nEND\n", ["4:srun"]),
        (ONE, "cat list | xargs srun ./a\n", ["3:srun"]),
        (ONE, "./launch --with srun\n", ["3:srun"]),
        (ONE, "srun() { ./own \"$@\"; }\nsrun ./a\n", ["3:srun"]),
        (ONE, "srun ./a : ./b\n", ["3:srun"]),
        (ONE, "srun -n1 ./a : -n1 ./b\n", ["3:srun"]),
        (ONE, "srun\n", ["3:srun"]),
        (ONE, "srun --version\n", ["3:srun", "3:srun --version"]),
        (ONE, "srun --het-group=0 ./a\n", ["3:srun --het-group"]),
        (ONE, "srun --multi-prog conf\n", ["3:srun --multi-prog"]),
        (ONE, "srun --jobid=77 ./a\n", ["3:srun --jobid"]),
        (ONE, "srun -n $((2 - 1)) ./a\n", ["3:srun --ntasks"]),
        (ONE, "srun -n $N ./a\n", ["3:srun --ntasks"]),
        (ONE, "srun -n 2 ./a\n", ["3:srun --ntasks"]),
        (ONE, "SLURM_NTASKS=4\nsrun -n $SLURM_NTASKS ./a\n", ["3:SLURM_NTASKS", "4:srun --ntasks"]),
        (ONE, "srun --gres=gpu:1 ./a\n", ["3:srun --gres"]),
        (ONE, "srun --gpus-per-task=3 ./a\n", ["3:srun --gpus-per-task"]),
        (ONE, "srun --chdir=/x ./a\n", ["3:srun --chdir"]),
        (ONE, "srun --export=A=1 ./a\n", ["3:srun --export"]),
        (ONE, "srun -o a.txt ./a > b.txt\n", ["3:srun --output"]),
        (ONE, "srun 2>e -l ./a\n", ["3:srun"]),
        (ONE, 'echo "open\nsrun ./a\n', ["3:srun"]),
        (FOUR, "srun ./a < data\n", ["3:srun"]),
        (FOUR, "cat data | srun ./a\n", ["3:srun"]),
        (FOUR, "srun ./a <<END\nx\nEND\n", ["3:srun"]),
        (FOUR, "exec srun ./a\n", ["3:srun"]),
        (FOUR, "srun --gpu-bind=mask_gpu:0x1,0x2 ./a\n", ["3:srun --gpu-bind"]),
        (TWO_NODES, 'echo "no srun here"\n./a\n', ["2:--nodes"]),
        (TWO_NODES, "cat > x.sh <<END\nsrun ./a\nEND\n", ["2:--nodes"]),
        (ONE, "sbatch next.sh\n", ["1:sbatch"]),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_carried_over_is_refused(head: str, body: str, errors: list[str]) -> None:
    """Words before the program that only a running shell knows, parts of the job and hidden calls are refused."""
    found = errors_of(head + body)
    assert sorted(re.sub(r"^\d+:sbatch", "1:sbatch", each) for each in found) == sorted(errors)


def test_waiting_for_all_nodes_is_what_gangs_do() -> None:
    """`--wait-all-nodes` of either value is accepted and reported: replicas start together."""
    job = converted(TWO_NODES + "#SBATCH --wait-all-nodes=1\nsrun ./a\n")
    assert "--wait-all-nodes" in {each.field for each in job.notes if each.result is Result.DROPPED}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (ONE + "cat > a.sh <<'END'\nsrun ./a\nEND\nbash a.sh\n", "srun"),
        (ONE + "srun ./a & srun ./b & wait\n", "srun &"),
        (ONE + "srun --output=log-%j ./a\n", "srun --output"),
        (ONE + "srun --mem=4G ./a\n", "srun --mem"),
        (ONE + "srun --wait=60 ./a\n", "srun --wait"),
        (FOUR + "srun -K ./a\n", "srun --kill-on-bad-exit"),
        (TWO_NODES + "srun -K0 ./a\n", "srun --kill-on-bad-exit"),
        (FOUR + "srun --accel-bind=g ./a\n", "srun --accel-bind"),
        (FOUR + "#SBATCH --no-kill --nice=5 --qos=high\n./a\n", "--no-kill"),
        (FOUR + "#SBATCH --qos=high\n./a\n", "--qos"),
        (FOUR + "srun --gpu-bind=closest ./a\n", "srun --gpu-bind"),
        ("#!/bin/bash\n#SBATCH -o out.txt\ntail out.txt\n", "--output"),
        ("#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=2 -m cyclic\nsrun ./a\n", "--distribution"),
        ("\ufeff#!/bin/bash\r\n#SBATCH --gpus=1\r\n./a\r\n", "script"),
    ],
)
def test_a_difference_is_reported_as_changed(text: str, field: str) -> None:
    """A difference that the program could notice is never only `not kept`."""
    assert field in {each.field for each in converted(text).notes if each.result is Result.CHANGED}


def test_an_option_of_srun_is_ignored_on_request() -> None:
    """With `--ignore srun`, the word after srun is the program."""
    job = convert_script(ONE + 'srun "$@"\n', "try.sbatch", frozenset({"srun"}))
    assert job is not None
    assert script_of(job).endswith('\n"$@"\n')


def test_each_task_sees_its_gpus(tmp_path: Path) -> None:
    """With --gpus-per-task and a binding, each process of a step sees its part of the GPUs of its replica."""
    show = "sh -c 'echo $SLURM_LOCALID:$CUDA_VISIBLE_DEVICES'"
    head = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks-per-node=2"
    for count, options in (("--gpus-per-task=2", ""), ("--gpus-per-node=4", "--gpus-per-task=2")):
        assert run(f"{head} {count}\nsrun {options} {show}\n", tmp_path) == ["0:0,1", "1:2,3"]
    alone = f"{head} --gpus-per-node=2 --gpu-bind=single:1\nsrun {show}\n"
    assert run(alone, tmp_path) == ["0:0", "1:1"]
    assert run(alone, tmp_path, CUDA_VISIBLE_DEVICES="GPU-a,GPU-b") == ["0:GPU-a", "1:GPU-b"]
    assert run(f"{head} --gpus-per-node=2\nsrun {show}\n", tmp_path) == ["0:", "1:"]


def test_the_function_leaves_the_variables_of_the_script(tmp_path: Path) -> None:
    """The function that starts tasks changes no variable of the script, and passes on signals and exit codes."""
    head = "#!/bin/bash\n#SBATCH --ntasks-per-node=2 --nodes=1\n"
    assert run(head + "rank=7 code=8 pids=9\nsrun true\necho $rank $code $pids\n", tmp_path) == ["7 8 9"]
    assert run(head + "srun sh -c 'exit 3'\necho $?\n", tmp_path) == ["3"]
    trap = (
        "srun bash -c 'trap \"echo saved; exit 0\" USR1; touch r$SLURM_LOCALID; while :; do :; done' &\n"
        "until [ -e r0 ] && [ -e r1 ]; do :; done\nkill -USR1 $!\nwait $!\necho $?\n"
    )
    assert run(head + trap, tmp_path) == ["0", "saved", "saved"]


SRUN = """#!/bin/bash
while true; do
  case $1 in
    -n|-c|--ntasks) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
for rank in $(seq 0 $((TASKS - 1))); do SLURM_LOCALID=$rank SLURM_PROCID=$rank "$@"; done
"""
"""A program srun that runs the tasks of a step one after another."""

SHOW = """#!/bin/bash
printf -v words ' [%s]' "$@"
echo "show $SLURM_PROCID$words $MARK"
"""
"""A program that prints its arguments and variables."""


def program(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def run(text: str, folder: Path, **variables: str) -> list[str]:
    """Run the converted form of a script, and return the lines of its output in order."""
    job = converted(text)
    command = [each.replace("$$", "$") for each in job.fields["run"]["command"]]
    return _output(command, folder, {"PATH": f"{folder}:/usr/bin:/bin", "HOSTNAME": "pod", **variables})


def _output(command: list[str], folder: Path, env: dict[str, str]) -> list[str]:
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return sorted(done.stdout.splitlines())


WORDS = st.sampled_from(
    ["a", "'b c'", '"$v"', "$v", "srun", "'srun -n 1 x'", '"srun $v"', "$((1 + 2))", "-n", "\\$v", "${v:-z}"]
)
OPTIONS = st.sampled_from(
    ["", "-l ", "-n {tasks} ", "--ntasks={tasks} ", "\\\n  --label ", "-lu ", "--ntasks={tasks} -- "]
)
PROGRAMS = st.sampled_from(["show", "./show", '"show"', "$tool", '"${line[@]}"'])


@st.composite
def commands(draw: st.DrawFn, with_steps: bool = True) -> str:
    """Return a statement of a script, with steps or with texts about them."""
    words = " ".join(draw(st.lists(WORDS.filter(lambda each: each != "srun"), max_size=3)))
    call = f"{'srun ' + draw(OPTIONS) if with_steps else ''}{draw(PROGRAMS)} {words}"
    texts = st.sampled_from([
        f"echo {words}", "echo 'go srun -n 9'", 'echo "srun --label $v"', "# srun ./x",
        f"w=\"{draw(st.sampled_from(['a', 'x srun y']))}\"",
        "cat <<'END'\nas srun does: $v\nEND", "cat <<END\n#SBATCH --gpus=9 $v\n#!/bin/sh\nEND",
    ])  # fmt: skip
    form = draw(st.sampled_from([
        "{call}", "{text}", "{text}\n{call}", "if {call}; then {text}\n:\nfi", "for i in 1 2; do {call}; done",
        "x=$({call}); echo \"$x\"", "{call} | cat", "( {call} )", "MARK=m {call}", "f() {{ {call}; }}; f",
        "{call} && echo ok",
        "case a in a) {call} ;; esac", "{call} > out; cat out", "while read -r q; do echo $q; done <<< hi",
    ]))  # fmt: skip
    return form.format(call=call, text=draw(texts))


@given(st.data(), st.sampled_from([1, 3]))
def test_programs_see_the_same_as_with_srun(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, tasks: int
) -> None:
    """The arguments and variables of all programs of a converted script are those of the script with srun."""
    folder = tmp_path_factory.mktemp("run")
    program(folder / "show", SHOW)
    lines = data.draw(st.lists(commands(), min_size=1, max_size=4))
    body = "v='1  2'\ntool=show\nline=(show 'q r')\n" + "\n".join(lines).replace("{tasks}", str(tasks)) + "\n"
    text = f"#!/bin/bash\n#SBATCH --nodes=1 --ntasks={tasks}\n{body}"
    after = run(text, folder)
    program(folder / "srun", SRUN)
    before = _output(
        ["bash", "-c", text], folder, {"PATH": f"{folder}:/usr/bin:/bin", "TASKS": str(tasks), "SLURM_PROCID": "0"}
    )
    assert after == before


@given(st.lists(commands(with_steps=False), max_size=6), st.sampled_from(["", "\n", "\x0c", "# \u2028x\n", "'\t\r'\n"]))
def test_a_script_without_steps_stays_byte_for_byte(lines: list[str], end: str) -> None:
    """Only commands that set the variables of Slurm precede a script without steps."""
    text = "#!/bin/bash\n#SBATCH --gpus=1\n" + "".join(f"{each}\n" for each in lines) + end
    before = script_of(converted(text)).removesuffix(text)
    assert before + text == script_of(converted(text))
    assert all(each.startswith("export ") for each in before.splitlines())


TEXTS = st.text(st.sampled_from("srun -n1'\"$(){}`;&|<>\\\n=:#@[]!*?ab/ \t"), max_size=80)


@given(TEXTS)
def test_no_text_raises_anything_but_an_error_of_the_importer(body: str) -> None:
    """A script of any shape is converted, or refused with its line."""
    text = f"#!/bin/bash\n#SBATCH --nodes=1\n{body}"
    try:
        job = convert_script(text, "try.sbatch")
    except RejectedError as error:
        errors = [error, *error.also]
        job = None
    assert job or all(re.match(r"try\.sbatch:\d+:", each.where) for each in errors)
    if job is None:
        return
    if "srun" not in body and "scontrol" not in body:
        assert script_of(job).endswith(text)
