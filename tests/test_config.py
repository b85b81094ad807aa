from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from specchat.cli.choices import World, theme_of
from specchat.config import (
    Measurement,
    Paths,
    Settings,
    State,
    find_paths,
    load_settings,
    load_state,
    models_folder,
    update_state,
)
from specchat.errors import ConfigError, UsageError
from specchat.pairs.catalog import Catalog


class TestPaths:
    @pytest.fixture(autouse=True)
    def home(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        for name in ("SPECCHAT_MODELS", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        return tmp_path

    def test_all_are_below_the_persons_home_and_none_is_made(self, home: Path):
        paths = find_paths()
        for path in (
            paths.settings_file,
            paths.models_file,
            paths.state_file,
            paths.models,
            paths.records,
            paths.cache,
        ):
            assert path.is_relative_to(home)
            assert "specchat" in path.parts
        assert list(home.iterdir()) == []

    @pytest.mark.parametrize(
        ("variable", "attribute"),
        [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "models"),
            ("XDG_DATA_HOME", "records"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ],
    )
    def test_xdg_folders_are_honoured(self, monkeypatch, tmp_path: Path, variable: str, attribute: str):
        monkeypatch.setenv(variable, str(tmp_path / "xdg"))
        assert getattr(find_paths(), attribute).is_relative_to(tmp_path / "xdg" / "specchat")

    def test_the_models_folder_can_be_anywhere(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
        monkeypatch.setenv("SPECCHAT_MODELS", "~/big disk")
        assert models_folder() == tmp_path / "big disk"
        monkeypatch.setenv("SPECCHAT_MODELS", "relative")
        assert models_folder() == Path("relative").absolute()
        monkeypatch.setenv("SPECCHAT_MODELS", " ")
        assert models_folder() == find_paths().records.parent / "models"
        monkeypatch.setenv("SPECCHAT_MODELS", "~no-such-user/models")
        with pytest.raises(UsageError, match="SPECCHAT_MODELS: ~no-such-user/models begins with ~"):
            find_paths()


class TestSettings:
    def test_no_file_gives_the_defaults(self, tmp_path: Path):
        assert load_settings(tmp_path / "settings.toml") == Settings()

    def test_a_full_file(self, tmp_path: Path):
        file = tmp_path / "settings.toml"
        file.write_text(
            'pair = "qwen3-8b"\ndraft = "ngram"\nmode = "fast"\ngamma = 4\nrule = "block"\ntemp = 0\ntop_k = 0\n'
            "top_p = 1\nmin_p = 0.05\nrepeat_penalty = 1.1\nseed = 7\nmax_tokens = 100\nctx = 4096\n"
            'gpu_layers = "auto"\nthreads = 2\nsystem = "@me.txt"\ntheme = "light"\noffline = true\n'
        )
        settings = load_settings(file)
        assert (settings.pair, settings.gamma, settings.temp, settings.gpu_layers) == ("qwen3-8b", 4, 0.0, "auto")
        assert settings.offline

    @pytest.mark.parametrize(
        ("text", "named", "hint"),
        [
            ("temprature = 1\n", '"temprature"', ""),
            ("gama = 4\n", '"gama"', '"gamma"'),
            ("top-p = 1\n", '"top-p"', '"top_p"'),
            ("gamma = 100\n", "gamma", ""),
            ("gamma = 'sometimes'\n", "gamma", ""),
            ("top_p = 1.5\n", "top_p", ""),
            ("temp = -1\n", "temp", ""),
            ("temp = nan\n", "temp", ""),
            ("ctx = 0\n", "ctx", ""),
            ("mode = 'slow'\n", "mode", ""),
            ("rule = 1\n", "rule", ""),
            ("offline = 'yes'\n", "offline", ""),
            ("pair\n", "line 1", ""),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path: Path, text: str, named: str, hint: str):
        file = tmp_path / "settings.toml"
        file.write_text(text)
        with pytest.raises(ConfigError) as refused:
            load_settings(file)
        assert str(file) in refused.value.message
        assert named in refused.value.message
        assert hint in refused.value.next_step


def test_the_readme_s_sample_has_every_key(tmp_path: Path):
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    sample = readme.partition("```toml\n")[2].partition("```")[0]
    file = tmp_path / "settings.toml"
    file.write_text(sample, "utf-8")
    assert load_settings(file) != Settings()
    every = re.sub(r"^# (?=\w+ = )", "", sample, flags=re.MULTILINE)
    file.write_text(every, "utf-8")
    load_settings(file)
    assert list(tomllib.loads(every)) == list(Settings.__struct_fields__)


def test_a_theme_is_known_or_the_known_ones_are_named():
    def theme(name: str | None) -> str:
        folder = Path("/nowhere")
        paths = Paths(folder, folder, folder, folder, folder)
        return theme_of(World(paths, Settings(theme=name), State(), Catalog({}, {})))

    assert [theme(name) for name in (None, "light", "nord")] == ["specchat-dark", "specchat-light", "nord"]
    with pytest.raises(ConfigError) as refused:
        theme("sunset")
    assert refused.value.message == '/nowhere/settings.toml: there is no theme "sunset".'
    assert "light" in refused.value.next_step
    assert "nord" in refused.value.next_step


def measured(pair: str = "p", device: str = "cpu", **values: float) -> Measurement:
    return Measurement(
        pair=pair,
        device=device,
        version="0.3.36",
        measured_at="2026-01-01T00:00:00+00:00",
        pass_seconds={1: 0.03, 2: 0.05},
        acceptance_by_position=(0.8, 0.6),
        plain_tokens_per_second=values.get("speed", 30.0),
    )


class TestState:
    def test_nothing_is_remembered_at_first(self, tmp_path: Path):
        assert load_state(tmp_path / "state.json") == (State(), None)

    def test_what_was_written_is_read_again(self, tmp_path: Path):
        file = tmp_path / "deep" / "state.json"
        update_state(file, lambda _: State(last_pair="p"))
        update_state(file, lambda state: state.with_measurement(measured()))
        state, notice = load_state(file)
        assert notice is None
        assert state.last_pair == "p"
        assert state.measurement("p", "cpu", "0.3.36") == measured()
        assert state.measurement("p", "gpu", "0.3.36") is None
        assert state.measurement("p", "cpu", "0.3.37") is None

    def test_a_new_measurement_takes_the_place_of_the_old(self):
        state = (
            State()
            .with_measurement(measured())
            .with_measurement(measured("other"))
            .with_measurement(measured(speed=40.0))
        )
        assert len(state.measurements) == 2
        assert state.measurement("p", "cpu", "0.3.36").plain_tokens_per_second == 40

    @pytest.mark.parametrize(
        "damage",
        [b"", b"\0" * 100, b"{", b'{"last_pair": 3}', b"\xff\xfe", b"[]", b"[" * 100_000, b'{"measurements": [{}]}'],
    )
    def test_a_damaged_file_is_ignored_with_a_notice_and_kept(self, tmp_path: Path, damage: bytes):
        file = tmp_path / "state.json"
        file.write_bytes(damage)
        state, notice = load_state(file)
        assert state == State()
        assert str(file) in notice
        assert file.read_bytes() == damage
        update_state(file, lambda state: State(last_pair="p"))
        assert load_state(file) == (State(last_pair="p"), None)
        assert (tmp_path / "state.json.bak").read_bytes() == damage

    def test_a_newer_specchat_may_have_written_more(self, tmp_path: Path):
        file = tmp_path / "state.json"
        file.write_text('{"last_pair": "p", "new": [1, 2]}')
        assert load_state(file) == (State(last_pair="p"), None)

    @pytest.mark.skipif(os.name == "nt", reason="POSIX rights")
    def test_it_is_the_persons_alone(self, tmp_path: Path):
        update_state(tmp_path / "state.json", lambda state: state)
        assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600

    def test_two_that_write_at_once_lose_nothing(self, tmp_path: Path):
        code = (
            "import sys, pathlib; from specchat.config import update_state; from tests.test_config import measured\n"
            "file, name = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
            "for n in range(10):\n"
            "    update_state(file, lambda s: s.with_measurement(measured(f'{name}-{n}')))\n"
        )
        root = str(Path(__file__).parents[1])
        environment = os.environ | {"PYTHONPATH": root}
        file = tmp_path / "state.json"
        running = [
            subprocess.Popen([sys.executable, "-c", code, str(file), name], cwd=root, env=environment) for name in "ab"
        ]
        assert [process.wait(60) for process in running] == [0, 0]
        assert len(load_state(file)[0].measurements) == 20


def test_importing_it_touches_no_file(tmp_path: Path):
    root = str(Path(__file__).parents[1])
    environment = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", "import specchat.config"], check=True, env=environment)
    assert list(tmp_path.iterdir()) == []
