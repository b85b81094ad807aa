"""Every pair that one can choose: the catalogue's, those that a person made, and those of models that were found.

The picker and ``specchat --pair --list`` take their rows from here. Nothing is loaded and no connection is opened, but
for `fetch`. The slow parts (`look_around`, `examine`, `discover`) belong into a thread of their own, one at a time;
everything else may be called meanwhile, and sees the pairs as they were until `discover` is through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from specchat.errors import ModelFileError, UsageError
from specchat.files import expanded
from specchat.pairs import store
from specchat.pairs.catalog import Catalog, Model, ModelPair
from specchat.pairs.combining import Free, pair_of, reference, references, remembered_pair
from specchat.pairs.fetching import Progress
from specchat.pairs.found import FoundModel, LeftOut, added_models
from specchat.pairs.library import other_models
from specchat.pairs.measured import Measured, latest
from specchat.pairs.memory import Machine, Surroundings
from specchat.pairs.remembered import Memory
from specchat.pairs.rows import PairRow, recommend
from specchat.pairs.shelf import examine, glance
from specchat.pairs.sources import fetch_pair
from specchat.pairs.suggestions import suggest_pairs
from specchat.strict_toml import nearest


@dataclass(slots=True)
class Collection:
    """Every pair, by its key.

    Attributes:
        catalog: the catalogue.
        folder: the models folder.
        memory: what was remembered.
        surroundings: asks for the devices; it may take some seconds.
        offline: open no connection.
        n_ctx: tokens of context to reckon with; None for the default.
        gpu_layers: layers of the target on GPUs; None for as many as fit.
        left_out: files that were found and cannot be used.
        around: the answer of ``surroundings``, once it has been asked.
    """

    catalog: Catalog
    folder: Path
    memory: Memory
    surroundings: Callable[[], Surroundings] = lambda: Surroundings(None)
    offline: bool = False
    n_ctx: int | None = None
    gpu_layers: int | None = None
    left_out: tuple[LeftOut, ...] = ()
    around: Surroundings | None = None
    _pairs: dict[str, ModelPair] = field(default_factory=dict)
    _keys: dict[tuple[str, str], str] = field(default_factory=dict)  # by `references`
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _suggested: tuple[str, ...] = ()
    _found: tuple[FoundModel, ...] = ()

    def __post_init__(self) -> None:
        for pair in self.catalog.all_pairs():
            self.put(pair)

    # --- what there is --------------------------------------------------------------------------------------------

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of all pairs."""
        return tuple(self._pairs)

    def take(self, pair: ModelPair) -> str:
        """Adds a pair, unless it is there, and returns its key: another where its own is taken by another pair."""
        with self._lock:
            return _take(pair, self._pairs, self._keys)

    def put(self, pair: ModelPair) -> None:
        """Adds a pair in place of the one that has its key."""
        with self._lock:
            self._pairs[pair.key] = pair
            self._keys.setdefault(references(pair), pair.key)

    def _drop(self, key: str) -> None:
        with self._lock:
            pair = self._pairs.pop(key, None)
            if pair is not None and self._keys.get(references(pair)) == key:
                del self._keys[references(pair)]

    def pair(self, key: str) -> ModelPair:
        """The pair of that name.

        Raises:
            UsageError: there is none; it names the nearest.
        """
        if key not in self._pairs:
            self._take_remembered()
        if key not in self._pairs:
            alike = nearest(key, self._pairs)
            hint = f"Did you mean {alike}?" if alike else "/pair alone lists all pairs."
            raise UsageError(f'There is no pair called "{key}".', hint)
        return self._pairs[key]

    def row(self, key: str) -> PairRow:
        """A pair at a glance: names and sizes only."""
        return glance(self._pairs[key], self.folder)

    def models(self) -> list[Model]:
        """Every model that could be a target or a draft: the catalogue's, those found, and those of pairs."""
        known = [*self.catalog.models.values(), *(each.model for each in self._found)]
        known += [model for pair in list(self._pairs.values()) for model in pair.models]
        return list({reference(model): model for model in reversed(known)}.values())[::-1]

    # --- slow -----------------------------------------------------------------------------------------------------

    def look_around(self) -> Surroundings:
        """Asks for the devices."""
        self.around = self.surroundings()
        return self.around

    def examine(self, row: PairRow, also_free: Callable[[Machine], Machine] = lambda machine: machine) -> PairRow:
        """The row with what its files tell, and what was measured of it.

        Args:
            row: at a glance.
            also_free: what would be free besides, once a pair that is loaded now is gone.
        """
        machine = None if self.around is None or self.around.machine is None else also_free(self.around.machine)
        return examine(row, machine, self.measured(row), n_ctx=self.n_ctx, gpu_layers=self.gpu_layers)

    def measured(self, row: PairRow) -> Measured | None:
        """What was last measured of a pair with the devices and the llama.cpp that are here."""
        if self.around is None or self.around.machine is None:
            return None
        here = {name for each in self.around.machine.target_devices for name in _names(each)}
        return latest(self.memory.read().measurements, row.names, here, self.around.build)

    def _take_remembered(self) -> None:
        """The pairs that the person made, as far as their files are still there: each header takes 0.1 seconds."""
        for target, draft in self.memory.read().combined:
            if (pair := remembered_pair(target, draft, self.catalog)) is not None:
                self.take(pair)

    def discover(self, cancelled: Callable[[], bool] = lambda: False) -> tuple[str, ...]:
        """Looks for models of other programs and in places that were added, and for pairs that the person made.

        Returns:
            The keys of all these pairs.
        """
        self._take_remembered()
        library = other_models(self.catalog, self.folder, self.memory.read().added, cancelled)
        suggested = suggest_pairs(library.models, cancelled)
        if cancelled():
            return ()
        self._found, self.left_out = library.models, library.left_out
        with self._lock:
            pairs = {key: pair for key, pair in self._pairs.items() if key not in self._suggested}
            keys = {references(pair): key for key, pair in reversed(pairs.items())}
            known = set(pairs)
            taken = [_take(pair, pairs, keys) for pair in suggested]
            self._suggested = tuple(key for key in taken if key not in known)
            self._pairs, self._keys = pairs, keys
        return tuple(key for key in pairs if key not in self.catalog.pairs)

    def all_rows(self) -> list[PairRow]:
        """Everything at once, examined, with the recommended one marked: for a list that is printed."""
        self.look_around()
        self.discover()
        return recommend([self.examine(self.row(key)) for key in self.keys])

    # --- what a person does ---------------------------------------------------------------------------------------

    def add(self, path: Path, cancelled: Callable[[], bool] = lambda: False) -> list[FoundModel]:
        """Adds a file or a folder; `discover` then makes pairs of it. Reading a header takes about 0.1 seconds.

        Args:
            path: the file or folder.
            cancelled: asked between files whether to stop; then nothing is added.

        Raises:
            ModelFileError: there is no such thing, or no model in it that can be used; it says why.
            UsageError: the path begins with the home of nobody.
        """
        path = expanded(path).absolute()
        findings = added_models(path, cancelled)
        if cancelled():
            return []
        models = [each for each in findings if isinstance(each, FoundModel)]
        if not models:
            first = next(each for each in findings if isinstance(each, LeftOut))
            raise ModelFileError(first.reason, first.next_step)
        self.memory.add_place(str(path))
        return models

    def combine(self, target: Model, draft: Model | Free) -> str:
        """Makes a pair of any two models, remembers it, and returns its key."""
        pair = pair_of(target, draft)
        known = set(self._pairs)
        key = self.take(pair)
        if key not in known:
            self.memory.add_pair(reference(target), reference(draft))
        return key

    def is_combined(self, key: str) -> bool:
        """Whether the person made that pair."""
        return references(self._pairs[key]) in self.memory.read().combined

    def put_there_by(self, key: str) -> str | None:
        """What the person did that put a pair on the list, and can be undone: "combined", or the place that was added.

        None for pairs that are there of themselves.
        """
        if self.is_combined(key):
            return "combined"
        path = self._pairs[key].target.path
        places = (place for place in self.memory.read().added if path and Path(path).is_relative_to(place))
        return max(places, key=len, default=None)

    def forget(self, key: str) -> None:
        """Takes a pair that the person made off the list, or all pairs of the place that it lies in.

        No file is touched; after a place `discover` must look again.
        """
        place = self.put_there_by(key)
        if place == "combined":
            self.memory.forget_pair(*references(self._pairs[key]))
        elif place is not None:
            self.memory.forget_place(place)
        if place is not None:
            self._drop(key)

    def fetch(self, key: str, progress: Progress, cancelled: Callable[[], bool]) -> tuple[Path, Path | None]:
        """Fetches what is missing of a pair: the paths of target and draft.

        Raises:
            SpecchatError: as `specchat.pairs.sources.fetch`.
        """
        pair = self._pairs[key]
        return fetch_pair(pair, self.folder, offline=self.offline, progress=progress, cancelled=cancelled)

    def discard(self, key: str) -> store.Removed:
        """Deletes what an interrupted fetch of a pair left; whole files stay.

        Raises:
            SpecchatError: it is being fetched just now, or the system refused.
        """
        missing = [state.model for state in self.row(key).states if state.stored is None]
        return store.together(store.discard(model, self.folder) for model in missing)

    def remove(self, models: Iterable[Model]) -> store.Removed:
        """Deletes models that specchat fetched, wherever it put them; nobody else's files are touched.

        Raises:
            SpecchatError: one is being fetched just now, or the system refused.
        """
        return store.together(store.remove(model, self.folder) for model in models)

    def users_of(self, model: Model, but: str) -> Iterator[ModelPair]:
        """The other pairs that have all their files here and would miss that one."""
        for key, pair in list(self._pairs.items()):
            if key != but and model in pair.models and self.row(key).is_here:
                yield pair


def _take(pair: ModelPair, pairs: dict[str, ModelPair], keys: dict[tuple[str, str], str]) -> str:
    same = keys.get(references(pair))
    if same is not None:
        return same
    key, number = pair.key, 1
    while key in pairs:
        number += 1
        key = f"{pair.key}-{number}"
    pairs[key] = pair if key == pair.key else pair.renamed(key)
    keys[references(pair)] = key
    return key


def _names(device: object) -> Iterator[str]:
    yield from (getattr(device, each) for each in ("name", "description") if hasattr(device, each))
