"""Replies that the tests of the screen show."""

from __future__ import annotations

from specchat.core.events import Round
from tests.tui.scripted_engine import reply_events, round_of

SKY = [
    "The|a sky|a is|a blue|a because|b",
    " sunlight|a contains|a all|a colors|x wavelengths|r",
    " of|a light|a,|a and|a the|b",
    " air|a scatters|a short|x waves|i blue|r",
    " light|a much|a more|a strongly|a than|b",
    " red|a light|a.|a\n\n|a" + "This|b",
    " is|a called|a Rayleigh|a scattering|a.|b",
    " It|a is|x also|i why|i explains|r",
    " why|a sunsets|a are|a red|a:|b",
    " |x the|i a|i long|i at|r",
    " dusk|a the|a light|a travels|a through|b",
    " more|a air|a,|a so|a less|b",
    " blue|a is|x light|i left|i reaches|r",
    " us|a.|a\n|r",
]


def sky_rounds(times: int = 1, details: bool = True) -> list[Round]:
    return [round_of(script, index, details=details) for index, script in enumerate(SKY * times)]


def sky_reply(times: int = 1) -> list:
    return reply_events(sky_rounds(times))
