"""Distributions against a slow, plain reading of the definition, and against llama.cpp's own samplers."""

import contextlib
import ctypes
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st

from specchat.core.sampling import Distribution, SamplingParams, distribution

MARGIN = 1e-6
"""How far a value must be from where top-p or min-p cut for float32 and float64 to agree on it."""
OFF = SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0)


class OnTheEdgeError(Exception):
    """Rounding decides what is kept."""


def by_definition(
    logits: np.ndarray, params: SamplingParams, history: Sequence[int] = (), n_allowed: int | None = None
) -> dict[int, float]:
    """The same order of steps as `distribution`, one token at a time."""
    row = [np.float32(value) for value in logits[:n_allowed]]
    with np.errstate(over="ignore"):
        for token, bias in params.logit_bias.items():
            if 0 <= token < len(row):
                row[token] += np.float32(bias)
        last_n = params.penalty_last_n if params.penalty_last_n >= 0 else len(history)
        for token, count in Counter(history[len(history) - min(last_n, len(history)) :]).items():
            if 0 <= token < len(row):
                repeat = np.float32(params.repeat_penalty)
                row[token] = row[token] * repeat if row[token] <= 0 else row[token] / repeat
                row[token] -= np.float32(count) * np.float32(params.frequency_penalty) + np.float32(
                    params.presence_penalty
                )
    left = [(float(value), token) for token, value in enumerate(row) if value > -math.inf]
    left.sort(key=lambda entry: (-entry[0], entry[1]))
    if params.temperature == 0:
        return {left[0][1]: 1.0}
    if params.top_k:
        left = left[: params.top_k]
    highest = left[0][0]
    if params.top_p < 1:
        total = math.fsum(math.exp(value - highest) for value, _ in left)
        cumulative, kept = 0.0, 0
        for value, _ in left:
            cumulative += math.exp(value - highest) / total
            kept += 1
            if abs(cumulative - params.top_p) < MARGIN:
                raise OnTheEdgeError
            if cumulative >= params.top_p:
                break
        left = left[:kept]
    if params.min_p > 0:
        bound = math.log(params.min_p)
        if any(value < highest and abs(value - highest - bound) < MARGIN for value, _ in left):
            raise OnTheEdgeError
        left = [(value, token) for value, token in left if value - highest >= bound]
    weights = {token: math.exp((value - highest) / params.temperature) for value, token in left}
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def assert_equal(found: Distribution, expected: dict[int, float]) -> None:
    """The same ids (but those too unlikely for floats) with the same probabilities."""
    assert found.ids.dtype == np.int32
    assert found.probs.dtype == np.float64
    assert (np.diff(found.ids) > 0).all()
    assert (found.probs > 0).all()
    assert found.probs.sum() == pytest.approx(1, abs=1e-12)
    likely = {token: probability for token, probability in expected.items() if probability > 1e-30}
    assert likely.keys() <= set(found.ids.tolist()) <= expected.keys()
    ids = np.array(sorted(likely), dtype=np.int32)
    np.testing.assert_allclose(found.probabilities(ids), [likely[token] for token in ids.tolist()], rtol=2e-5)


def changed_settings(params: SamplingParams) -> str:
    """The settings that are not the defaults, to name a test."""
    default = SamplingParams()
    changed = {name: getattr(params, name) for name in params.__slots__}
    return " ".join(f"{name}={value}" for name, value in changed.items() if value != getattr(default, name)) or "-"


eighths = st.integers(-160, 160).map(lambda n: n / 8)
rows = st.lists(st.one_of(eighths, st.sampled_from([-math.inf, 0.0, 3.0])), min_size=1, max_size=40).filter(
    lambda row: max(row) > -math.inf
)
settings = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 1e-40, 0.05, 0.7, 1.0, 2.5]),
    top_k=st.sampled_from([0, 1, 2, 5, 100]),
    top_p=st.sampled_from([1e-9, 0.3, 0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.05, 0.6, 1.0]),
    repeat_penalty=st.sampled_from([1.0, 1.1, 0.5, 4.0]),
    frequency_penalty=st.sampled_from([0.0, 0.25, -1.0]),
    presence_penalty=st.sampled_from([0.0, 0.5, -2.0]),
    penalty_last_n=st.sampled_from([-1, 0, 3, 64]),
    logit_bias=st.dictionaries(st.integers(-2, 45), st.sampled_from([-5.0, 0.5, 30.0]), max_size=4),
)


@given(row=rows, params=settings, history=st.lists(st.integers(-3, 60), max_size=12), n_allowed=st.integers(1, 45))
@example(row=[1.0, 1.0, 1.0, 1.0], params=SamplingParams(top_k=2, top_p=1, min_p=0), history=[], n_allowed=4)
def test_every_step_as_defined(row: list[float], params: SamplingParams, history: list[int], n_allowed: int) -> None:
    logits = np.array(row, dtype=np.float32)
    assume(logits[:n_allowed].max() > -math.inf)
    before = logits.copy()
    try:
        expected = by_definition(logits, params, history, n_allowed)
    except OnTheEdgeError:
        reject()
    assert_equal(distribution(logits, params, history, n_allowed), expected)
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize("n_vocab", [1000, 4097, 40_000])
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(temperature=0),
        OFF,
        SamplingParams(temperature=0.3, top_k=0, top_p=1, min_p=0),
        SamplingParams(top_k=0, min_p=0),
        SamplingParams(top_k=0, top_p=1),
        SamplingParams(top_k=0, top_p=1, min_p=1e-6),
        SamplingParams(top_k=0, top_p=0.9, min_p=0.02),
        SamplingParams(top_p=0.5),
        SamplingParams(top_k=3, min_p=0.02),
        SamplingParams(top_k=5000, top_p=1, min_p=0),
        SamplingParams(repeat_penalty=1.3, frequency_penalty=0.2, presence_penalty=0.4, logit_bias={7: 3.0, 9: -2.0}),
        SamplingParams(temperature=0, repeat_penalty=3.0, penalty_last_n=-1),
        SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0, repeat_penalty=1.5, logit_bias={3: -math.inf}),
    ],
    ids=changed_settings,
)
@pytest.mark.parametrize("spread", [0.3, 6.0])
def test_large_vocabularies_as_defined(n_vocab: int, params: SamplingParams, spread: float) -> None:
    rng = np.random.default_rng(n_vocab)
    expected = None
    while expected is None:
        logits = (rng.standard_normal(n_vocab) * spread).astype(np.float32)
        history = [*logits.argsort()[-30:].tolist(), *rng.integers(0, n_vocab, 20).tolist()]
        with contextlib.suppress(OnTheEdgeError):
            expected = by_definition(logits, params, history)
    assert_equal(distribution(logits, params, history), expected)


def test_the_lowest_id_wins_every_tie() -> None:
    """10,000 rows of few different values, on every path that looks for the largest."""
    rng = np.random.default_rng(1)
    greedy, penalized = SamplingParams(temperature=0), SamplingParams(temperature=0, presence_penalty=0.5)
    top_k = SamplingParams(temperature=1, top_k=7, top_p=1, min_p=0)
    for number in range(10_000):
        logits = rng.integers(-4, 4, size=rng.integers(1, 2500)).astype(np.float32)
        assert distribution(logits, greedy).ids[0] == np.flatnonzero(logits == logits.max())[0]
        if number % 5:
            continue
        history = rng.integers(0, logits.size, 3).tolist()
        changed = logits.copy()
        changed[np.unique(history)] -= np.float32(0.5)
        assert distribution(logits, penalized, history).ids[0] == changed.argmax()
        seven = np.argsort(-logits, kind="stable")[:7]
        assert distribution(logits, top_k).ids.tolist() == sorted(seven.tolist())


@pytest.mark.parametrize("n_vocab", [5, 700, 20_000])
@pytest.mark.parametrize(
    "params",
    [SamplingParams(), SamplingParams(temperature=0), OFF, SamplingParams(top_k=0), SamplingParams(top_k=1)],
    ids=changed_settings,
)
class TestLogitsThatMakeNoDistribution:
    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_nan_and_plus_infinity(self, n_vocab: int, params: SamplingParams, bad: float) -> None:
        for place in (0, n_vocab // 2, n_vocab - 1):
            logits = np.zeros(n_vocab, dtype=np.float32)
            logits[place] = bad
            for changes in ({}, {1: 1.0}, {place: -1.0}):
                biased = SamplingParams(
                    params.temperature, params.top_k, params.top_p, params.min_p, logit_bias=changes
                )
                with pytest.raises(ValueError, match="NaN or plus infinity"):
                    distribution(logits, biased)

    def test_nothing_left(self, n_vocab: int, params: SamplingParams) -> None:
        logits = np.full(n_vocab, -np.inf, dtype=np.float32)
        with pytest.raises(ValueError, match="no token is left"):
            distribution(logits, params)
        logits[1] = 1
        assert distribution(logits, params).ids.tolist() == [1]
        banned = SamplingParams(params.temperature, params.top_k, params.top_p, params.min_p, logit_bias={1: -math.inf})
        with pytest.raises(ValueError, match="no token is left"):
            distribution(logits, banned)


@pytest.mark.parametrize("logits", [np.zeros(0, np.float32), np.zeros((2, 3), np.float32)])
def test_anything_but_one_row_is_refused(logits: np.ndarray) -> None:
    with pytest.raises(ValueError, match="one row"):
        distribution(logits, SamplingParams())


def test_ids_that_only_the_draft_has_are_never_drawn() -> None:
    logits = np.arange(100, dtype=np.float32)
    for params in (SamplingParams(), SamplingParams(temperature=0), OFF):
        assert distribution(logits, params, n_allowed=60).ids.max() == 59


def test_read_only_logits_of_a_view_are_accepted() -> None:
    logits = np.linspace(-3, 3, 4000, dtype=np.float32).reshape(2, 2000)
    logits.flags.writeable = False
    for params in (SamplingParams(repeat_penalty=1.1), SamplingParams(temperature=0), OFF):
        assert distribution(logits[1], params, [5, 1999]).probs.sum() == pytest.approx(1)


def test_a_penalty_can_leave_everything_to_what_was_not_seen() -> None:
    """All of the largest values sink: those looked at instead must be the largest of the rest."""
    rng = np.random.default_rng(3)
    logits = rng.standard_normal(30_000).astype(np.float32)
    order = np.argsort(-logits)
    history = order[:50].tolist()
    found = distribution(logits, SamplingParams(temperature=0, presence_penalty=100, penalty_last_n=50), history)
    assert found.ids[0] == order[50]


@pytest.mark.parametrize("n_vocab", range(5000, 5065))
def test_the_largest_may_be_anywhere(n_vocab: int) -> None:
    """Also at the end of a row whose size the search's layout does not divide."""
    logits = np.linspace(0, 1, n_vocab, dtype=np.float32)
    five = SamplingParams(top_k=5, top_p=1, min_p=0)
    assert distribution(logits, five).ids.tolist() == list(range(n_vocab - 5, n_vocab))
    assert distribution(logits, five, n_allowed=n_vocab - 3).ids.tolist() == list(range(n_vocab - 8, n_vocab - 3))
    assert distribution(logits[::-1], five).ids.tolist() == [0, 1, 2, 3, 4]


def test_dense_distributions_of_a_vocabulary_share_their_ids() -> None:
    logits = np.linspace(-3, 3, 500, dtype=np.float32)
    left, right = distribution(logits, OFF), distribution(logits[::-1], OFF)
    assert left.ids is right.ids
    assert left.is_dense


# --- one distribution ---------------------------------------------------------------------------------------------


class FixedDraw(np.random.Generator):
    """A generator whose ``random()`` gives what a test wants, and counts."""

    def __init__(self, *draws: float) -> None:
        super().__init__(np.random.PCG64(0))
        self.draws = list(draws)

    def random(self, *args: object, **kwargs: object) -> float:  # type: ignore[override]
        return self.draws.pop(0)


ALMOST_ONE = float(np.nextafter(1, 0))


@pytest.mark.parametrize("size", [1, 2, 3, 511, 512, 513, 5000])
def test_a_draw_inverts_the_cumulative_distribution(size: int) -> None:
    rng = np.random.default_rng(size)
    dense = rng.random(size) * (rng.random(size) < 0.7)
    dense[rng.integers(size)] = 1
    law = Distribution.from_dense(dense)
    cumulative = law.probs.cumsum()
    for draw in [0.0, ALMOST_ONE, *rng.random(200)]:
        token = law.sample(FixedDraw(draw))
        place = int(np.flatnonzero(law.ids == token)[0])
        assert cumulative[place] >= draw - 1e-12
        assert place == 0 or cumulative[place - 1] <= draw + 1e-12
        assert dense[token] > 0


def test_a_draw_on_an_edge_goes_to_the_token_that_begins_there() -> None:
    law = Distribution.from_dense(np.ones(2048))
    assert [law.sample(FixedDraw(token / 2048)) for token in range(2048)] == list(range(2048))


def test_no_draw_gives_an_impossible_token() -> None:
    for dense in ([0, 1, 0], [0.1] * 10 + [0], [1e-300, 1, 0], [1 / 3, 1 / 3, 1 / 3, 0]):
        law = Distribution.from_dense(dense)
        for draw in (0.0, 5e-324, 1e-17, 0.5, 1 - 1e-15, ALMOST_ONE):
            assert dense[law.sample(FixedDraw(draw))] > 0


@pytest.mark.parametrize("law", [Distribution.one_hot(5), Distribution.from_dense(np.ones(3000))])
def test_a_draw_takes_exactly_one_number(law: Distribution) -> None:
    used, reference = np.random.default_rng(4), np.random.default_rng(4)
    law.sample(used)
    reference.random()
    assert used.random() == reference.random()


def test_the_largest_come_first_and_the_lowest_id_in_a_tie() -> None:
    law = Distribution.from_dense([0.1, 0.3, 0, 0.3, 0.3])
    assert [token for token, _ in law.top(10)] == [1, 3, 4, 0]
    assert [token for token, _ in law.top(2)] == [1, 3]
    assert law.top(0) == []
    assert law.top(1) == [(1, pytest.approx(0.3))]
    flat = Distribution.from_dense(np.ones(5000))
    assert [token for token, _ in flat.top(10)] == list(range(10))


@pytest.mark.parametrize("size", [4096, 4097, 20_000, 152_000])
def test_the_largest_of_a_whole_vocabulary_come_first(size: int) -> None:
    """Few values, so that there are thousands of ties on every edge."""
    weights = np.random.default_rng(size).integers(1, 60, size=size).astype(np.float64)
    weights[[7, size - 1]] = 1000
    ordered = np.lexsort((np.arange(size), -weights))[:12].tolist()
    assert [token for token, _ in Distribution.from_dense(weights).top(12)] == ordered
    assert Distribution.from_dense(weights).top(0) == []


def test_one_hot() -> None:
    law = Distribution.one_hot(7)
    assert (law.ids.tolist(), law.probs.tolist(), len(law)) == ([7], [1.0], 1)
    assert law.sample(np.random.default_rng(0)) == 7


@pytest.mark.parametrize("dense", [[0, 0], [-1, 2], [math.nan, 1], [math.inf, 1], [[1, 2]], []])
def test_weights_that_make_no_distribution(dense: list[float]) -> None:
    with pytest.raises(ValueError, match="weights must be"):
        Distribution.from_dense(dense)


@given(
    left=st.dictionaries(st.integers(0, 30), st.floats(0.01, 1), min_size=1),
    right=st.dictionaries(st.integers(0, 30), st.floats(0.01, 1), min_size=1),
)
def test_probabilities_of_other_ids(left: dict[int, float], right: dict[int, float]) -> None:
    def law(weights: dict[int, float]) -> Distribution:
        return Distribution.from_dense([weights.get(token, 0.0) for token in range(31)])

    first, second = law(left), law(right)
    found = first.probabilities(second.ids)
    assert found.tolist() == [first.probability(token) for token in second.ids.tolist()]
    assert [first.probability(token) > 0 for token in range(-1, 32)] == [token in left for token in range(-1, 32)]


def test_the_arrays_of_a_distribution_are_read_only() -> None:
    law = Distribution.from_dense([0.5, 0.5])
    with pytest.raises(ValueError, match="read-only"):
        law.probs[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        law.ids[0] = 1


@pytest.mark.parametrize("size", [1, 7, 64, 65, 512, 513, 3000])
def test_single_answers_agree_with_the_arrays(size: int) -> None:
    """A dense distribution in float32, as sampling makes it, and one with gaps."""
    rng = np.random.default_rng(size)
    weights = rng.random(size, dtype=np.float32) + np.float32(0.01)
    weights[[0, size // 2]] = 2
    dense = Distribution.of_weights(np.arange(size, dtype=np.int32), weights.copy())
    gaps = Distribution.of_weights(np.arange(5, 5 + 3 * size, 3, dtype=np.int32), weights.astype(np.float64))
    for law in (dense, gaps):
        assert law.probs.dtype == np.float64
        assert not law.probs.flags.writeable
        assert law.probs.sum() == pytest.approx(1, abs=1e-12)
        assert [law.probability(token) for token in law.ids.tolist()] == law.probs.tolist()
        assert law.probability(-1) == law.probability(3 * size + 5) == 0
        assert law.largest == law.probs.max()
        assert law.likeliest == law.ids[law.probs.argmax()] == law.top(1)[0][0]
    np.testing.assert_allclose(dense.probs, weights / weights.sum(dtype=np.float64), rtol=1e-14)


def test_a_distribution_shows_its_largest_entries() -> None:
    assert repr(Distribution.from_dense([0.25, 0.75])) == "<Distribution of 2: 1: 0.75, 0: 0.25>"
    assert repr(Distribution.from_dense(np.ones(20))).endswith(", …>")


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_p": math.nan},
        {"min_p": -0.1},
        {"min_p": 1.1},
        {"repeat_penalty": 0.0},
        {"repeat_penalty": math.inf},
        {"frequency_penalty": math.nan},
        {"presence_penalty": math.inf},
        {"penalty_last_n": -2},
        {"logit_bias": {1: math.nan}},
        {"logit_bias": {1: math.inf}},
        {"logit_bias": {1: 1e39}},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    (name,) = wrong
    words = {"temperature": "temperature", "top_k": "top-k", "top_p": "top-p", "min_p": "min-p"}
    with pytest.raises(ValueError, match=words.get(name, name.split("_")[0])):
        SamplingParams(**wrong)  # type: ignore[arg-type]


def test_what_penalties_look_at() -> None:
    context = [1, 2, 3, 4, 5]
    for last_n, expected in ((0, []), (2, [4, 5]), (9, context), (-1, context)):
        recent = SamplingParams(repeat_penalty=1.1, penalty_last_n=last_n).recent(context)
        assert recent == expected
        assert recent is not context
    assert SamplingParams().recent(context) == []


def test_what_the_settings_switch_on() -> None:
    assert SamplingParams().truncates
    assert not OFF.truncates
    assert not SamplingParams().penalizes
    assert SamplingParams(presence_penalty=0.1).penalizes
    assert not SamplingParams(presence_penalty=0.1, penalty_last_n=0).penalizes


# --- llama.cpp ------------------------------------------------------------------------------------------------------


def by_llama_cpp(logits: np.ndarray, params: SamplingParams, history: Sequence[int]) -> dict[int, float]:
    """The server's chain of samplers on this row. They need no model."""
    lib = pytest.importorskip("llama_cpp.llama_cpp")
    n_vocab = logits.size
    bias = (lib.llama_logit_bias * max(1, len(params.logit_bias)))(
        *(lib.llama_logit_bias(token, value) for token, value in params.logit_bias.items())
    )
    chain = [
        lib.llama_sampler_init_logit_bias(n_vocab, len(params.logit_bias), bias),
        lib.llama_sampler_init_penalties(
            n_vocab, params.penalty_last_n, params.repeat_penalty, params.frequency_penalty, params.presence_penalty
        ),
        lib.llama_sampler_init_top_k(params.top_k),
        lib.llama_sampler_init_top_p(params.top_p, 0),
        lib.llama_sampler_init_min_p(params.min_p, 0),
        lib.llama_sampler_init_temp(params.temperature),
    ]
    entries = (lib.llama_token_data * n_vocab)(
        *(lib.llama_token_data(token, float(value), 0.0) for token, value in enumerate(logits))
    )
    row = lib.llama_token_data_array(entries, n_vocab, -1, False)
    for token in history:
        lib.llama_sampler_accept(chain[1], token)
    for sampler in chain:
        lib.llama_sampler_apply(sampler, ctypes.byref(row))
        lib.llama_sampler_free(sampler)
    left = {row.data[i].id: row.data[i].logit for i in range(row.size) if row.data[i].logit > -math.inf}
    highest = max(left.values())
    weights = {token: math.exp(value - highest) for token, value in left.items()}
    return {token: weight / sum(weights.values()) for token, weight in weights.items()}


@pytest.mark.parametrize("n_vocab", [50, 2000])
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        OFF,
        SamplingParams(temperature=0),
        SamplingParams(temperature=0, repeat_penalty=1.4),
        SamplingParams(temperature=1.3, top_k=0),
        SamplingParams(top_k=0, top_p=1),
        SamplingParams(top_k=10, top_p=0.6, min_p=0),
        SamplingParams(repeat_penalty=1.2, penalty_last_n=5),
        SamplingParams(frequency_penalty=0.7, presence_penalty=0.3, top_k=20),
        SamplingParams(repeat_penalty=0.8, frequency_penalty=-0.2, logit_bias={3: 4.0, 17: -math.inf, 30: -1.5}),
    ],
    ids=changed_settings,
)
def test_the_same_distribution_as_llama_cpps_samplers(n_vocab: int, params: SamplingParams) -> None:
    rng = np.random.default_rng(n_vocab)
    for _ in range(5):
        logits = (rng.standard_normal(n_vocab) * 3).astype(np.float32)
        history = [*logits.argsort()[-4:].tolist(), *rng.integers(0, n_vocab, 8).tolist(), 3, 3]
        expected = by_llama_cpp(logits, params, history)
        assert_equal(distribution(logits, params, history), expected)
