"""A run that is stopped, killed, doubled or spread over processes gives the table of an undisturbed one."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from baggraph import ResultTable
from baggraph.experiments import _tasks as tasks
from baggraph.experiments._ledger import Ledger
from baggraph.experiments._tasks import Task, bundled, keys, plan
from baggraph.experiments.executors import Processes, Serial, by_name
from baggraph.experiments.recipe import Recipe, read_recipe
from baggraph.experiments.run import Progress, results_folder, run

SMALL = Path(__file__).parent / "small.toml"
KEY = ["method", "dataset", "repeat", "fold", "metric"]
PLAIN = [*KEY, "task", "seed", "value", "note", "setting", "n_train", "n_test", "recipe_sha256", "data_sha256"]


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return read_recipe(SMALL)


@pytest.fixture(scope="module")
def undisturbed(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return content(run([recipe], tmp_path_factory.mktemp("run"))["small"])


def content(table: ResultTable) -> pd.DataFrame:
    """What must be equal: everything but times and places."""
    return table.frame()[PLAIN].sort_values(KEY).reset_index(drop=True)


def start(folder: Path, *more: str, recipe: Path = SMALL) -> subprocess.Popen[bytes]:
    program = "from baggraph.cli import main; main()"
    command = [sys.executable, "-c", program, "reproduce", str(recipe), "-q", "-o", str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_table_is_complete(undisturbed: pd.DataFrame) -> None:
    assert len(undisturbed) == 4 * 8 * 3
    assert undisturbed["value"].notna().all()
    assert undisturbed.groupby("method")["seed"].nunique().to_dict() == {
        "bag size": 1,
        "majority": 1,
        "rFF+pool": 8,
        "rFF+pool, 3 draws": 8,
    }


def test_what_is_there_is_not_computed_again(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run([recipe], tmp_path, tier="smoke")["small"]
    monkeypatch.setattr("baggraph.experiments.run.perform", lambda task: pytest.fail(f"again: {task}"))
    assert run([recipe], tmp_path, tier="smoke")["small"] == first


def test_interrupted_run_goes_on(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: pd.DataFrame
) -> None:
    done: list[Task] = []

    def stops(task: Task) -> tasks.Done:
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(task)
        return tasks.perform(task)

    monkeypatch.setattr("baggraph.experiments.run.perform", stops)
    with pytest.raises(KeyboardInterrupt):
        run([recipe], tmp_path)
    monkeypatch.undo()
    calls: list[Task] = []

    def counts(task: Task) -> tasks.Done:
        calls.append(task)
        return tasks.perform(task)

    monkeypatch.setattr("baggraph.experiments.run.perform", counts)
    table = run([recipe], tmp_path)["small"]
    assert len(calls) == len(bundled(plan(recipe, "short"))) - 5
    pd.testing.assert_frame_equal(content(table), undisturbed)


def killed_and_resumed(folder: Path, path: Path, kills: int, *more: str) -> tuple[ResultTable, list[int]]:
    """The table after so many kills, and how many tasks were written when they came."""
    chance, rows = random.Random(kills), results_folder(folder, "short", read_recipe(path))
    written = []
    for _ in range(kills):
        before = len(list(rows.glob("*.parquet")))
        process = start(folder, *more, recipe=path)
        while process.poll() is None and len(list(rows.glob("*.parquet"))) == before:
            time.sleep(0.01)  # until it is at work
        time.sleep(chance.uniform(0.0, 0.25))
        process.kill()
        process.wait()
        written.append(len(list(rows.glob("*.parquet"))))
    assert start(folder, *more, recipe=path).wait(timeout=250) == 0
    return ResultTable.read(rows), written


def test_killed_run_resumes(recipe: Recipe, tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    table, written = killed_and_resumed(tmp_path, SMALL, 1)
    assert 0 < written[0] < len(bundled(plan(recipe, "short")))
    pd.testing.assert_frame_equal(content(table), undisturbed)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("engine", "kills"), [("serial", 20), ("processes", 5)])
def test_killed_many_times(tmp_path: Path, engine: str, kills: int) -> None:
    """Of 180 tasks, every run writes a few until it is killed."""
    longer = tmp_path / "longer.toml"
    longer.write_text(SMALL.read_text(encoding="utf-8").replace("repeats = 8", "repeats = 150"), encoding="utf-8")
    expected = content(run([read_recipe(longer)], tmp_path / "undisturbed")["small"])
    table, written = killed_and_resumed(tmp_path / "killed", longer, kills, "--engine", engine)
    assert len(set(written)) == kills  # all of them came in the middle of work
    assert written[-1] < 180
    pd.testing.assert_frame_equal(content(table), expected)


def test_two_processes_give_the_same_table(recipe: Recipe, tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    table = run([recipe], tmp_path, executor=Processes(2))["small"]
    pd.testing.assert_frame_equal(content(table), undisturbed)


def test_two_runners_share_a_folder(recipe: Recipe, tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    runners = [start(tmp_path), start(tmp_path)]
    assert [runner.wait(timeout=200) for runner in runners] == [0, 0]
    folder = results_folder(tmp_path, "short", recipe)
    pd.testing.assert_frame_equal(content(ResultTable.read(folder)), undisturbed)
    rows = sum(len(pd.read_parquet(path)) for path in folder.glob("*.parquet"))
    assert rows == len(undisturbed)  # no task was done twice


def test_one_stack_of_all_repeats_gives_the_same_table(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: pd.DataFrame
) -> None:
    monkeypatch.setattr(tasks, "_together", lambda _: 8)  # as on a GPU
    assert len(bundled(plan(recipe, "short"))) == 3
    pd.testing.assert_frame_equal(content(run([recipe], tmp_path)["small"]), undisturbed)


def test_repeats_that_others_did_are_left_out(recipe: Recipe, tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    seen: list[tuple[int, ...]] = []

    def progress(state: Progress) -> None:
        seen.append(state.last.repeats)
        if len(seen) == 1:  # another runner does two repeats of what is planned as one task of eight
            run([recipe], tmp_path, only=["bag size"], repeats=2)

    table = run([recipe], tmp_path, only=["majority", "bag size"], progress=progress)["small"]
    assert seen == [tuple(range(8)), tuple(range(2, 8))]
    expected = undisturbed[undisturbed["method"].isin(["majority", "bag size"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(content(table), expected)


def test_lock_ends_with_its_holder(recipe: Recipe, tmp_path: Path) -> None:
    task = plan(recipe, "smoke")[0]
    one, other = Ledger(tmp_path), Ledger(tmp_path)
    assert one.claim(task)
    assert not other.claim(task)
    one.release(task)
    assert other.claim(task)


def test_ledger_sees_what_others_write(recipe: Recipe, tmp_path: Path) -> None:
    task = plan(recipe, "smoke")[0]
    one, other = Ledger(tmp_path), Ledger(tmp_path)
    assert not other.has(keys(task))
    assert one.claim(task)
    one.enter(task, tasks.perform(task))
    assert other.has(keys(task))


def test_rows_of_an_older_recipe_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL.read_text(encoding="utf-8"), encoding="utf-8")
    run([read_recipe(path)], tmp_path, tier="smoke", only=["rFF+pool"])
    changed = tmp_path / "changed" / "small.toml"
    changed.parent.mkdir()
    changed.write_text(path.read_text(encoding="utf-8").replace("epochs = 3", "epochs = 4"), encoding="utf-8")
    table = run([read_recipe(changed)], tmp_path, tier="smoke", only=["rFF+pool"], repeats=1)["small"]
    assert set(table.names("repeat")) == {0}  # the second repeat was trained otherwise


def test_failed_tasks_keep_their_traceback(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from baggraph.baselines import MajorityClassifier

    def fails(*_: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(MajorityClassifier, "fit", fails)
    table = run([recipe], tmp_path, tier="smoke", only=["majority"])["small"]
    assert len(table.failed) == len(table) == 6
    assert "no luck" in table.failed.names("error")[0]


def test_progress_knows_the_time_left(recipe: Recipe, tmp_path: Path) -> None:
    seen: list[tuple[int, float]] = []
    run([recipe], tmp_path, tier="smoke", progress=lambda state: seen.append((state.done, state.seconds_left)))
    assert [done for done, _ in seen] == [2, 4, 5, 6]
    assert seen[0][1] > 0
    assert seen[-1][1] == 0


def test_progress_weighs_kinds_of_tasks(recipe: Recipe) -> None:
    slow, quick = (task for task in plan(recipe, "smoke") if task.repeats == (0,) and task.methods[0] != "majority")
    state = Progress(4, _left=[slow, slow])
    state._seconds, state._spent = {slow.kind: [10.0], quick.kind: [1.0]}, 11.0
    state.begun = time.monotonic() - 11
    assert state.seconds_left == pytest.approx(20, rel=0.01)


def test_executors_by_name() -> None:
    assert by_name("serial") == Serial()
    assert by_name("processes", 3) == Processes(3)
    with pytest.raises(ValueError, match="did you mean 'processes'"):
        by_name("process")


def test_rows_of_another_folder_are_taken_over(recipe: Recipe, tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    from baggraph import cross_validate, datasets, make

    bags = datasets.load("digits-bags")
    methods = {"majority": make("majority"), "bag size": make("bag size")}
    other = cross_validate(methods, bags, folds=3, repeats=8, metrics=["accuracy"], dataset="digits-bags")
    other.append(tmp_path / "other")
    calls: list[Task] = []
    table = run(
        [recipe], tmp_path / "own", rows_from=tmp_path / "other", progress=lambda state: calls.append(state.last)
    )["small"]
    assert {method for task in calls for method in task.methods} == {"rFF+pool", "rFF+pool, 3 draws"}
    pd.testing.assert_frame_equal(content(table), undisturbed)


def test_rows_on_other_folds_are_not_taken_over(recipe: Recipe, tmp_path: Path) -> None:
    from baggraph import cross_validate, datasets, make

    bags = datasets.load("digits-bags")
    elsewhere = {"folds": 3, "repeats": 8, "metrics": ["accuracy"], "dataset": "digits-bags", "random_state": 1}
    cross_validate({"majority": make("majority")}, bags, **elsewhere).append(tmp_path / "other")
    run([recipe], tmp_path / "own", rows_from=tmp_path / "other", repeats=0)
    assert len(ResultTable.read(results_folder(tmp_path / "own", "short", recipe))) == 0
