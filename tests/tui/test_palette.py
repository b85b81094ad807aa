from specchat.tui.palette import SlashCommands
from specchat.tui.screens.help import HelpScreen
from tests.tui.screens import running


async def test_commands_are_offered_where_a_chat_can_carry_them_out():
    async with running() as (app, pilot):

        async def offered():
            provider = SlashCommands(app.screen)
            return [hit async for hit in provider.discover()], [hit async for hit in provider.search("gamma")]

        found = await offered()
        assert (len(found[0]) > 10, len(found[1]) > 0) == (True, True)
        app.push_screen(HelpScreen())
        await pilot.pause()
        assert await offered() == ([], [])
