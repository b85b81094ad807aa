import os
from time import monotonic, sleep

import pytest

from specchat.tui.clipboard import clipboard_program, copy_with_program


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with nothing but programs that write their input into a file of their name."""

    def have(*names):
        for name in names:
            path = tmp_path / name
            path.write_text(f"#!/bin/sh\n/bin/cat > {tmp_path}/{name}.out\n")
            path.chmod(0o755)
        return tmp_path

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return have


@pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")
@pytest.mark.parametrize(("program", "encoding"), [("pbcopy", "utf-8"), ("clip.exe", "utf-16-le")])
def test_text_goes_to_the_programs_input(programs, program, encoding):
    out = programs(program) / f"{program}.out"
    assert copy_with_program("天空\n👩") == program
    expected = "天空\n👩".encode(encoding)
    until = monotonic() + 30
    while not out.exists() or len(out.read_bytes()) < len(expected):
        assert monotonic() < until
        sleep(0.01)
    assert out.read_bytes() == expected


def test_a_program_without_its_display_is_no_use(programs, monkeypatch):
    programs("xclip", "wl-copy")
    assert clipboard_program() is None
    assert copy_with_program("x") is None
    monkeypatch.setenv("DISPLAY", ":0")
    assert clipboard_program()[1:] == ("-selection", "clipboard")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert clipboard_program()[0].endswith("wl-copy")
