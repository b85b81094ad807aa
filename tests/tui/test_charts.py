from specchat.tui.charts import bar, columns, grouped, progress_bar, stacked


def test_columns_stand_on_a_fixed_scale():
    assert columns([1.0, 0.5, 0.0, None], 2) == ["█   ", "██▁ "]
    assert columns([0.75], 3) == ["▂", "█", "█"]
    assert columns([], 3) == ["", "", ""]


def test_bars_have_eighths_and_a_fixed_width():
    assert bar(0.5, 4) == "██  "
    assert bar(1 / 32, 4) == "▏   "
    assert bar(7.0, 2) == "██"
    assert bar(-1.0, 2) == "  "
    assert progress_bar(0.25, 4) == "▓░░░"


def test_stacked_parts_fill_the_width_exactly():
    assert stacked([1, 1, 1], 10) == [3, 4, 3]
    assert stacked([0.0, 0.0], 10) == [0, 0]
    assert sum(stacked([0.013, 0.034, 0.002, 0.0001], 37)) == 37


def test_neighbours_are_added_up_where_there_are_too_many():
    assert grouped([(1, 2), (0, 0), (3, 4)], 10) == [0.5, None, 0.75]
    assert grouped([(1, 2), (1, 2), (4, 4), (2, 4)], 2) == [0.5, 0.75]
    assert grouped([], 5) == []
