import pytest

from specchat.core.events import Fate
from specchat.core.fate_style import (
    DARK_BACKGROUND,
    FATE_STYLES,
    LIGHT_BACKGROUND,
    worst,
)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("fate", Fate)
def test_every_fate_can_be_read_on_both_backgrounds(fate):
    style = FATE_STYLES[fate]
    assert contrast(style.dark, DARK_BACKGROUND) >= 4.5
    assert contrast(style.light, LIGHT_BACKGROUND) >= 4.5


def test_marks_tell_all_fates_apart_without_colour():
    assert len({style.mark for style in FATE_STYLES.values()}) == len(Fate)
    shown_in_text = (Fate.ACCEPTED, Fate.RESAMPLED, Fate.REJECTED, Fate.BONUS)
    assert len({FATE_STYLES[fate].attribute for fate in shown_in_text}) == 4


def test_a_shared_character_shows_its_worst_fate():
    assert worst(Fate.ACCEPTED, Fate.RESAMPLED, Fate.BONUS) is Fate.RESAMPLED
    assert worst(Fate.ACCEPTED, Fate.BONUS) is Fate.BONUS
    assert worst(Fate.ACCEPTED) is Fate.ACCEPTED
