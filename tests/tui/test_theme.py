from specchat.tui.theme import known_themes
from tests.tui.screens import app_on


def test_every_theme_that_can_be_named_is_there():
    known = known_themes()
    assert (known["dark"], known["light"]) == ("specchat-dark", "specchat-light")
    app = app_on()
    for name in known.values():
        app.theme = name
    assert set(known.values()) == set(app.available_themes)
