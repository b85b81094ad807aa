"""Where specchat keeps its files, the settings that a person writes, and what the program itself remembers.

The settings file is the person's own: specchat reads it and never writes it. What specchat remembers (the last pair,
what was measured here) stands in a file of its own, which may be deleted at any time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import platformdirs

from specchat.core.settings import Mode, Rule
from specchat.errors import UsageError
from specchat.files import exclusive, expanded, write_atomically
from specchat.strict_toml import convert, read_toml

_APP = "specchat"


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders that specchat uses. None of them need exist."""

    config: Path
    models: Path
    records: Path
    cache: Path
    state: Path

    @property
    def settings_file(self) -> Path:
        """The person's settings."""
        return self.config / "settings.toml"

    @property
    def models_file(self) -> Path:
        """The person's own models and pairs, laid over the built-in ones."""
        return self.config / "models.toml"

    @property
    def state_file(self) -> Path:
        """What specchat remembers."""
        return self.state / "state.json"


def find_paths() -> Paths:
    """The folders for this person on this system: the XDG variables, and SPECCHAT_MODELS for the models, decide.

    Raises:
        UsageError: SPECCHAT_MODELS begins with the home of nobody.
    """
    data = Path(platformdirs.user_data_dir(_APP, appauthor=False))
    named = os.environ.get("SPECCHAT_MODELS", "").strip()
    try:
        models = expanded(named).absolute() if named else data / "models"
    except UsageError as problem:
        raise UsageError(f"SPECCHAT_MODELS: {problem.message}", problem.next_step) from None
    return Paths(
        config=Path(platformdirs.user_config_dir(_APP, appauthor=False)),
        models=models,
        records=data / "records",
        cache=Path(platformdirs.user_cache_dir(_APP, appauthor=False)),
        state=Path(platformdirs.user_state_dir(_APP, appauthor=False)),
    )


def models_folder() -> Path:
    """The folder that models are fetched into."""
    return find_paths().models


_Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings file. Every key has the name of the command's option; what is left out is specchat's default."""

    pair: str | None = None
    """The pair to chat with when no other was used last."""
    target: str | None = None
    """A GGUF file as target, in place of a pair's."""
    draft: str | None = None
    """"none", "ngram", "auto", a model of the catalogue, or a GGUF file."""
    mode: Mode | None = None
    gamma: Literal["auto"] | Annotated[int, msgspec.Meta(ge=0, le=64)] | None = None
    rule: Rule | None = None
    temp: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0, le=1 << 24)] | None = None
    top_p: _Share | None = None
    min_p: _Share | None = None
    repeat_penalty: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] | None = None
    max_tokens: _Count | None = None
    ctx: _Count | None = None
    gpu_layers: Literal["auto"] | Annotated[int, msgspec.Meta(ge=0, le=10_000)] | None = None
    device: str | None = None
    device_draft: str | None = None
    threads: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None
    system: str | None = None
    """The system prompt, or ``@FILE``."""
    theme: str | None = None
    """"dark", "light", or any theme of Textual's (`specchat.tui.theme.known_themes`)."""
    offline: bool = False


def load_settings(path: Path) -> Settings:
    """The person's settings; the defaults where there is no file.

    Raises:
        ConfigError: an unknown key or a wrong value; it names file and key, and the nearest known key.
    """
    return convert(read_toml(path), Settings, "", path) if path.exists() else Settings()


class Recommended(msgspec.Struct, frozen=True, kw_only=True):
    """What a measurement recommends: "draft", "ngram" or "none", with γ and the predicted speedup."""

    drafter: str
    num_draft_tokens: int
    speedup: float


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a pair on one device with one version of llama.cpp and one size of context.

    Times are seconds. ``pass_seconds[n]`` is the median time of a target pass of n tokens; ``acceptance_by_position``
    is α for positions 1, 2, …; ``speedup`` is against plain decoding, None where it was not measured.
    ``measured_at`` is a date and time in ISO 8601.
    """

    pair: str
    device: str
    version: str
    measured_at: str
    pass_seconds: dict[int, float]
    draft_step_seconds: float | None = None
    draft_catch_up_seconds: float | None = None
    acceptance_by_position: tuple[float, ...] = ()
    plain_tokens_per_second: float
    speedup: float | None = None
    n_ctx: int = 0
    recommended: Recommended | None = None


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """What a pair has taught about drafting, in one setup (`specchat.engine.interface.Learned`)."""

    pair: str
    setup: str
    experience: dict[str, Any]


_MOST_LESSONS = 40


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What specchat remembers from one start to the next.

    ``last_target`` and ``last_draft`` were chosen in place of a pair of the catalogue. ``added`` are GGUF files and
    folders that the person added to the pair picker; ``combined`` are pairs that the person made there, target and
    draft (`specchat.pairs.combining.reference`).
    """

    last_pair: str | None = None
    last_target: str | None = None
    last_draft: str | None = None
    added: tuple[str, ...] = ()
    combined: tuple[tuple[str, str], ...] = ()
    measurements: tuple[Measurement, ...] = ()
    lessons: tuple[Lesson, ...] = ()

    def measurement(self, pair: str, device: str, version: str) -> Measurement | None:
        """What was measured of that pair, on that device, with that version; the latest where it is more."""
        wanted = (pair, device, version)
        return next((m for m in reversed(self.measurements) if (m.pair, m.device, m.version) == wanted), None)

    def with_measurement(self, new: Measurement) -> State:
        """The state with ``new`` in place of what was measured before of the same."""
        key = (new.pair, new.device, new.version, new.n_ctx)
        others = tuple(m for m in self.measurements if (m.pair, m.device, m.version, m.n_ctx) != key)
        return msgspec.structs.replace(self, measurements=(*others, new))

    def with_lesson(self, new: Lesson) -> State:
        """The state with ``new`` in place of what was learned before of the same; the oldest lessons are dropped."""
        others = [each for each in self.lessons if (each.pair, each.setup) != (new.pair, new.setup)]
        return msgspec.structs.replace(self, lessons=(*others[1 - _MOST_LESSONS :], new))


def load_state(path: Path) -> tuple[State, str | None]:
    """What specchat remembers, and a notice where the file was damaged and nothing of it could be used."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=State), None
    except FileNotFoundError:
        return State(), None
    except OSError as error:
        return (
            State(),
            f"{path} cannot be read ({error.strerror or error}): the last pair and measurements are unknown.",
        )
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return State(), f"{path} is damaged and was ignored: the last pair and measurements are unknown."


def update_state(path: Path, change: Callable[[State], State]) -> State:
    """Changes what specchat remembers, also while another specchat does. A damaged file is kept beside it as ``.bak``.

    Raises:
        OSError: the file cannot be written.
    """
    with exclusive(path.with_name(f"{path.name}.lock"), lambda: None):
        state, notice = load_state(path)
        if notice is not None:
            path.replace(path.with_name(f"{path.name}.bak"))
        state = change(state)
        write_atomically(path, msgspec.json.format(msgspec.json.encode(state), indent=1))
    return state
