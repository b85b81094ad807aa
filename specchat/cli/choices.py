"""What to chat with and how: the options, then the settings file, then what specchat remembers, then defaults."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specchat.cli.terminal import say
from specchat.config import Paths, Settings, State, find_paths, load_settings, load_state
from specchat.core.sampling_params import SamplingParams
from specchat.core.settings import (
    DEFAULT_RULE,
    Mode,
    ReplySettings,
    default_draft_tokens,
    default_drafter,
    default_temperature,
)
from specchat.engine.interface import Load
from specchat.errors import ConfigError, UsageError
from specchat.files import expanded, text_or_file

if TYPE_CHECKING:
    from specchat.pairs.catalog import Catalog, Model, ModelPair

_DRAFTERS = ("none", "ngram", "auto")
"""What ``--draft`` can say besides a model."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything that is known before a command begins: files, settings, memory, catalogue."""

    paths: Paths
    settings: Settings
    state: State
    catalog: Catalog


def look_around() -> World:
    """Reads the settings, what specchat remembers, and the catalogue.

    Raises:
        ConfigError: the settings file or a catalogue cannot be used.
    """
    from specchat.pairs.catalog import load_catalog

    paths = find_paths()
    state, notice = load_state(paths.state_file)
    if notice is not None:
        say(notice)
    return World(paths, load_settings(paths.settings_file), state, load_catalog(paths.models_file))


def theme_of(world: World) -> str:
    """The screen's theme, as Textual calls it: the one that the settings file names, or the dark one.

    Raises:
        ConfigError: there is no theme of that name.
    """
    from specchat.tui.theme import DARK, known_themes  # slow to import, and wanted by screens only

    name = world.settings.theme
    if name is None:
        return DARK.name
    known = known_themes()
    if name not in known:
        said = f'{world.paths.settings_file}: there is no theme "{name}".'
        raise ConfigError(said, f"Known themes: {', '.join(known)}.")
    return known[name]


class Choices:
    """The answers, by option: what was given on the command line, or else what the settings file says."""

    def __init__(self, options: argparse.Namespace, world: World) -> None:
        self._options = options
        self._world = world

    def given(self, name: str) -> Any:
        """The value of an option; None where neither says anything, or "auto" was said."""
        if hasattr(self._options, name):
            return getattr(self._options, name)
        value = getattr(self._world.settings, name)
        return None if value == "auto" else value

    @property
    def offline(self) -> bool:
        """Whether the network must not be asked."""
        return bool(self.given("offline"))

    @property
    def system(self) -> str:
        """The system message; empty for none."""
        text = self.given("system")
        if text is None or hasattr(self._options, "system"):
            return text or ""
        try:
            return text_or_file(text)
        except UsageError as problem:
            said = f"{self._world.paths.settings_file}: system: {problem.message}"
            raise UsageError(said, problem.next_step) from None

    def drafter(self, mode: Mode) -> str:
        """Who drafts: "draft" (a model), "ngram", "auto" (each round the one that promises most) or "none"."""
        return self._draft if self._draft in _DRAFTERS else default_drafter(mode)

    @property
    def names_draft(self) -> bool:
        """Whether a draft model was named, on the command line or in the settings file."""
        return self._draft is not None and self._draft not in _DRAFTERS

    def draft_tokens(self, mode: Mode) -> int | None:
        """γ, None for *auto*: as it was given, or as the mode has it."""
        said = hasattr(self._options, "gamma") or self._world.settings.gamma is not None
        gamma: int | None = self.given("gamma")
        return gamma if said else default_draft_tokens(mode)

    @property
    def _draft(self) -> str | None:
        """What ``--draft`` says. A draft model of the settings file goes with no pair that the command line names."""
        named = hasattr(self._options, "draft") or not (getattr(self._options, "pair", None) or self._target)
        draft: str | None = self.given("draft")
        return draft if named or draft in _DRAFTERS else None

    @property
    def _target(self) -> str | None:
        return getattr(self._options, "target", None)

    def reply_settings(self, default_mode: Mode) -> ReplySettings:
        """How replies are written.

        Raises:
            UsageError: values that do not make sense.
        """
        mode = self.given("mode") or default_mode
        names = {"temp": "temperature"} | {name: name for name in ("top_k", "top_p", "min_p", "repeat_penalty")}
        values = {field: self.given(name) for name, field in names.items()}
        sampling = {field: value for field, value in values.items() if value is not None}
        sampling = {"temperature": default_temperature(mode)} | sampling
        try:
            params = SamplingParams(**sampling)
        except ValueError as problem:
            raise UsageError(f"Wrong sampling settings: {problem}.", "`specchat --help` shows the options.") from None
        return ReplySettings(
            sampling=params,
            mode=mode,
            num_draft_tokens=self.draft_tokens(mode),
            rule=self.given("rule") or DEFAULT_RULE,
            drafter=self.drafter(mode),
            max_tokens=self.given("max_tokens"),
            seed=self.given("seed"),
        )

    def load(self, mode: Mode) -> Load:
        """How to load, with the files still to be filled in."""
        return Load(
            target="",
            n_ctx=self.given("ctx"),
            gpu_layers=self.given("gpu_layers"),
            threads=self.given("threads"),
            target_device=self.given("device"),
            draft_device=self.given("device_draft"),
            exact=mode == "exact",
            draft_if_it_pays=mode == "fast",
        )

    def pair(self) -> ModelPair:
        """The pair to chat with.

        A pair or a target on the command line, the settings file's target, the one used last, the settings file's
        pair, the default pair: the first of these. ``--draft`` changes its draft.

        Raises:
            UsageError: there is no such pair or model, or a pair and a target were both given.
            ModelFileError: a file is missing or is no GGUF file.
        """
        from specchat.pairs.combining import pair_of

        pair = self._pair_before_draft()
        draft = self._draft
        if draft is None or draft == "auto":
            return pair
        if draft in _DRAFTERS:
            return replace(pair, draft=None)
        return pair_of(pair.target, self._model(draft))

    def _pair_before_draft(self) -> ModelPair:
        from specchat.pairs.catalog import DEFAULT_PAIR
        from specchat.pairs.combining import pair_of

        catalog, state = self._world.catalog, self._world.state
        name, target = getattr(self._options, "pair", None), self._target
        if name and target:
            raise UsageError("Both --pair and --target were given.", "Leave one of them out.")
        if name:
            return catalog.pair(name)
        target = target or self._world.settings.target
        if target:
            return pair_of(self._model(target), "none")
        if state.last_pair is not None and state.last_pair in catalog.pairs:
            return catalog.pair(state.last_pair)
        if state.last_target is not None and (last := self._last(state.last_target, state.last_draft)):
            return last
        return catalog.pair(self._world.settings.pair or DEFAULT_PAIR)

    def _last(self, target: str, draft: str | None) -> ModelPair | None:
        """The pair that was put together and used last; without its draft where that is gone."""
        from specchat.pairs.combining import remembered_pair

        catalog = self._world.catalog
        pair = None if draft is None else remembered_pair(target, draft, catalog)
        return pair or remembered_pair(target, "none", catalog)

    def _model(self, text: str) -> Model:
        """A model by its name in the catalogue, or a file."""
        from specchat.pairs.catalog import model_from_file

        if text in self._world.catalog.models:
            return self._world.catalog.models[text]
        path = expanded(text)
        if path.suffix.lower() == ".gguf" or path.exists():
            return model_from_file(path)
        return self._world.catalog.model(text)  # says which name is nearest
