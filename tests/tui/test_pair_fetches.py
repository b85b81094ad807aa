"""Figures of a fetch: what of a pair is here, how fast it comes, and when nothing comes."""

from __future__ import annotations

import pytest

from specchat.pairs.catalog import Model, ModelPair, Pair
from specchat.pairs.fetching import FetchProgress
from specchat.pairs.rows import ModelState, PairRow
from specchat.tui import pair_fetches
from specchat.tui.pair_fetches import FetchState, pair_progress

TARGET = Model(key="t", name="Target", file="t.gguf", size=1000)
DRAFT = Model(key="d", name="Draft", file="d.gguf", size=400)
PAIR = ModelPair(Pair(key="p", target="t", draft="d"), TARGET, DRAFT)


def row(begun: int = 0) -> PairRow:
    return PairRow(PAIR, ModelState(TARGET, None, 1000), ModelState(DRAFT, None, 400, begun))


def progress(model: str, done: int) -> FetchProgress:
    return FetchProgress(model, "hub", done, None, "fetching")


@pytest.mark.parametrize(
    ("latest", "begun", "done"),
    [(progress("Target", 300), 0, 300), (progress("Target", 300), 100, 400), (progress("Draft", 50), 0, 1050)],
)
def test_bytes_of_both_models_are_added_up(latest, begun, done):
    assert pair_progress(row(begun), latest) == (done, 1400)


def test_share_and_time_left():
    state = FetchState("fetching", 700, 1400, 70.0)
    assert (state.share, state.seconds_left) == (0.5, 10.0)
    assert FetchState("fetching", 700, None).share is None
    assert FetchState("fetching", 0, 1400, None).seconds_left is None


def test_the_rate_is_that_of_the_last_seconds(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(pair_fetches.time, "monotonic", lambda: clock[0])
    rate = pair_fetches._Rate()

    def seen(at: float, done: int) -> float | None:
        clock[0] = at
        return rate.of(done)

    assert seen(100, 0) is None
    assert [seen(101, 1000), seen(104, 1600)] == [1000, 400]
    seen(110, 2200)
    assert seen(112, 2300) == pytest.approx((2300 - 1600) / (112 - 104))
    assert seen(117, 2300) == pytest.approx(100 / 7)
    assert rate.silence == 5
    assert seen(130, 2300) is None
    assert seen(131, 0) is None, "another part began"
    assert seen(133, 200) == 100
    assert rate.silence == 0
