"""The two themes of specchat, and the fates' colours as CSS variables that every theme has."""

from __future__ import annotations

from textual.theme import BUILTIN_THEMES, Theme

from specchat.core.fate_style import DARK_BACKGROUND, DARK_TEXT, FATE_STYLES, LIGHT_BACKGROUND, LIGHT_TEXT


def fate_variables(dark: bool) -> dict[str, str]:
    """``fate-accepted`` and so on: the colours for a dark or a light background."""
    return {f"fate-{fate}": style.dark if dark else style.light for fate, style in FATE_STYLES.items()}


DARK = Theme(
    name="specchat-dark",
    primary="#96C0EC",
    secondary="#7C8FA6",
    accent="#96C0EC",
    warning="#FFD400",
    error="#F2777A",
    success="#9CCB7C",
    foreground=DARK_TEXT,
    background=DARK_BACKGROUND,
    surface=DARK_BACKGROUND,
    panel="#2A2A2A",
    dark=True,
    variables={
        "line": "#454545",
        "quiet": "#9A9A9A",
        "block-cursor-foreground": DARK_BACKGROUND,
        "footer-key-foreground": "#96C0EC",
        "input-selection-background": "#96C0EC 35%",
        **fate_variables(dark=True),
    },
)

LIGHT = Theme(
    name="specchat-light",
    primary="#2F6391",
    secondary="#5A6B7C",
    accent="#2F6391",
    warning="#8A5A00",
    error="#B3261E",
    success="#2E6B34",
    foreground=LIGHT_TEXT,
    background=LIGHT_BACKGROUND,
    surface=LIGHT_BACKGROUND,
    panel="#ECEDEE",
    dark=False,
    variables={
        "line": "#C4C8CC",
        "quiet": "#5F666D",
        "footer-key-foreground": "#2F6391",
        "input-selection-background": "#2F6391 25%",
        **fate_variables(dark=False),
    },
)


def missing_variables(theme: Theme) -> dict[str, str]:
    """What specchat's CSS needs and another theme does not define."""
    lines = {"line": "#454545", "quiet": "#9A9A9A"} if theme.dark else {"line": "#C4C8CC", "quiet": "#5F666D"}
    return lines | fate_variables(theme.dark)


def known_themes() -> dict[str, str]:
    """The names of themes that a person can write, each with Textual's own name for it."""
    own = {"dark": DARK.name, "light": LIGHT.name}
    return own | {name: name for name in (DARK.name, LIGHT.name, *BUILTIN_THEMES)}
