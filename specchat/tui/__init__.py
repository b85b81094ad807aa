"""The terminal screen. The only room that imports Textual."""
