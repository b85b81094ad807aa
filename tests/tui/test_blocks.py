import pytest

from specchat.core.events import CommittedToken, Fate, Round, RoundSeconds
from specchat.tui.blocks import Notice, Question
from specchat.tui.line_index import LineIndex
from specchat.tui.reply_block import Reply
from specchat.tui.token_cursor import TokenCursor, cursor_at, last_cursor
from tests.tui.scripted_engine import round_of
from tests.tui.stories import SKY, sky_rounds


def reply_of(*scripts, width=40, rejected=False):
    reply = Reply(show_rejected=rejected)
    for index, script in enumerate(scripts):
        reply.add(round_of(script, index))
    reply.typeset(width)
    return reply


def text_of(block):
    return "".join(block.line(y).copied() for y in range(block.height))


def shown(block):
    return ["".join(piece.shown for piece in block.line(y).pieces) for y in range(block.height)]


def looks(block):
    return [(piece.shown, piece.look) for y in range(block.height) for piece in block.line(y).pieces]


def test_every_token_has_the_look_of_its_fate():
    reply = reply_of("The|a sky|a hue|x blue|r", " is|b")
    assert looks(reply) == [
        ("The", "accepted"),
        (" sky", "accepted"),
        (" ", "plain"),
        ("blue", "resampled"),
        (" is", "bonus"),
    ]


def test_rejected_tokens_are_hidden_until_asked_for_and_never_copied():
    reply = reply_of("The|a hue|x of|i sky|r")
    assert shown(reply) == ["The sky"]
    reply.show(rejected=True)
    reply.typeset(40)
    assert shown(reply) == ["The ×hue× sky"]
    assert text_of(reply) == "The sky"


@pytest.mark.parametrize(("text", "mark"), [(" ", "␣"), ("\n", "⏎"), ("\n\n", "⏎⏎")])
def test_a_lone_space_or_line_end_that_was_not_accepted_is_drawn(text, mark):
    reply = reply_of(f"a|a{text}|r")
    assert "".join(shown(reply)) == "a" + mark
    assert text_of(reply) == "a" + text
    assert "".join(shown(reply_of(f"a|a{text}|a"))).strip() == "a"


def test_a_rejected_line_end_does_not_break_the_line():
    assert shown(reply_of("a|a\n|x b|r", rejected=True)) == ["a×⏎× b"]


def test_a_character_of_several_tokens_shows_the_worst_fate_and_knows_its_tokens():
    def token(raw, text, fate):
        return CommittedToken(7, raw, text, fate, 0.5)

    llama = "🦙".encode()
    committed = (
        token(llama[:2], "", Fate.ACCEPTED),
        token(llama[2:3], "", Fate.RESAMPLED),
        token(llama[3:], "🦙 ok", Fate.BONUS),
    )
    played = Round(0, 0.1, "token", 2, (), committed, RoundSeconds(0, 0, 0, 0))
    reply = Reply()
    reply.add(played)
    reply.typeset(40)
    assert looks(reply) == [("🦙", "resampled"), (" ok", "bonus")]
    assert reply.sharing(1) == range(3)
    assert reply.sharing(2) == range(3)


def test_an_emoji_that_tokens_cut_at_its_joiners_is_one_glyph():
    reply = reply_of("👩|a\u200d|a👧|r ok|b")
    assert looks(reply) == [("👩\u200d👧", "resampled"), (" ok", "bonus")]
    assert reply.sharing(0) == range(3)


def test_streaming_and_typesetting_at_once_give_the_same_lines():
    streamed = Reply()
    streamed.typeset(30)
    for played in sky_rounds():
        streamed.add(played)
    assert shown(streamed) == shown(reply_of(*SKY, width=30))


def test_held_back_text_and_figures_come_at_the_end():
    reply = reply_of("a|b")
    reply.finish("a tail", "2 tokens")
    assert shown(reply) == ["a tail", "2\u00a0tokens"]
    assert text_of(reply) == "a tail"
    reply.reopen()
    reply.typeset(40)
    assert shown(reply) == ["a"]


def test_tokens_are_found_by_line_and_lines_by_token():
    reply = reply_of(*SKY, width=24)
    for token in range(len(reply.tokens)):
        first, last = reply.lines_of(token)
        if reply.is_visible(token):
            pieces = [piece for y in range(first, last + 1) for piece in reply.line(y).pieces]
            assert any(piece.first <= token <= piece.last for piece in pieces)


def test_questions_and_notices_show_text_as_it_is():
    question = Question("[bold]x[/] \x1b[2J", waiting="waits")
    question.typeset(40)
    assert shown(question) == ["> [bold]x[/] ␛[2J", "  waits"]
    question.answer()
    question.typeset(40)
    assert shown(question) == ["> [bold]x[/] ␛[2J"]
    notice = Notice("error", "It [/failed].", "Do that.")
    notice.typeset(40)
    assert shown(notice) == ["! It [/failed].", "→ Do that."]


# --- the index of all lines ------------------------------------------------------------------------------------------


def index_of(*blocks, width=20):
    index = LineIndex()
    index.set_width(width)
    for block in blocks:
        index.insert(block)
    return index


def all_lines(index):
    lines = [index.line(y) for y in range(index.height)]
    return ["".join(piece.shown for piece in line.pieces) for line in lines]


def test_blocks_follow_each_other_with_an_empty_line_between():
    index = index_of(Question("one"), Question("two two two two two two"), Question("three"))
    assert all_lines(index) == ["> one", "", "> two two two two", "  two two", "", "> three"]
    assert index.find(3) == (1, 1)
    assert index.line(-1) is None
    assert index.line(6) is None


def test_the_index_keeps_up_with_growing_changing_and_removed_blocks():
    reply, question = Reply(), Question("two", waiting="waits")
    index = index_of(Question("one"), reply, question)
    for played in sky_rounds():
        reply.add(played)
    index.changed(reply)
    assert index.height == 1 + 1 + reply.height + 1 + 2
    question.answer()
    index.typeset_block(2)
    assert index.height == 1 + 1 + reply.height + 1 + 1
    index.insert(Question("between"), before=question)
    assert all_lines(index)[-3:] == ["> between", "", "> two"]
    index.remove(index.blocks[2])
    index.remove(reply)
    assert all_lines(index) == ["> one", "", "> two"]
    index.clear()
    assert index.height == 0


def test_another_width_is_made_where_it_is_looked_at_and_elsewhere_bit_by_bit():
    index = index_of(*(Question("word " * 20) for _ in range(30)))
    index.set_width(40)
    index.typeset_up_from(29, 5)
    assert index.blocks[29].width == 40
    assert index.blocks[0].width == 20
    while index.typeset_some(0.0):
        pass
    assert {block.width for block in index.blocks} == {40}
    assert index.height == sum(block.height + 1 for block in index.blocks) - 1


# --- the token cursor ------------------------------------------------------------------------------------------------


def test_the_cursor_walks_over_all_tokens_that_are_shown_in_all_replies():
    index = index_of(Question("q"), reply_of("a|a x|x b|r"), Question("q"), reply_of("c|p", "d|p"))
    cursor = last_cursor(index)
    seen = []
    while cursor is not None:
        seen.append(index.blocks[cursor.block].token(cursor.token).text)
        cursor = cursor.beside(index, -1)
    assert seen == ["d", "c", " b", "a"]


def test_the_cursor_moves_up_and_down_near_its_column():
    index = index_of(reply_of("one|a two|a three|b", " four|a five|a six|b", width=14), width=14)
    assert all_lines(index) == ["one two three", "four five six"]
    cursor = cursor_at(index, 0, 9)
    assert index.blocks[0].token(cursor.token).text == " three"
    below = cursor.above_or_below(index, 1, 5)
    assert index.blocks[0].token(below.token).text == " five"
    assert below.above_or_below(index, 1, 5) is None
    assert cursor_at(index, 0, 13) is None
    assert cursor_at(index, 7, 0) is None
    assert TokenCursor(0, 0).lines(index) == range(1)


def test_the_figures_below_a_reply_break_only_after_their_dots():
    reply = reply_of("so|p")
    reply.typeset(20)
    reply.finish("so", "55 tokens · 39.5 tok/s · A ⟵ B")
    assert shown(reply)[1:] == ["55\u00a0tokens\u00a0·", "39.5\u00a0tok/s\u00a0· A\u00a0⟵\u00a0B"]
