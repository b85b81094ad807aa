"""A chat template is a program from a file: whatever it does, the answer is a text or an error, and soon."""

import contextlib

import pytest

from specchat.decoding.template import MessagesRefusedError, render_template
from specchat.errors import TemplateError
from tests.decoding import templates

MESSAGES = [{"role": "user", "content": "hi & <b>bye</b>"}]

ESCAPES = [
    "{{ lipsum.__globals__['os'].popen('id').read() }}",  # CVE-2024-34359
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ joiner.__init__.__globals__.os.system('id') }}",
    "{{ namespace.__init__.__globals__.os.popen('id').read() }}",
    "{{ self.__init__.__globals__.__builtins__.__import__('os').popen('id').read() }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ().__class__.__base__.__subclasses__() }}",
    "{{ messages.__class__.__init__.__globals__ }}",
    "{{ messages|attr('__class__') }}",
    "{{ messages|attr('_' ~ '_class_' ~ '_') }}",
    "{{ (messages|map(attribute='__class__')|list)[0].__name__ }}",
    "{{ ''['__class__'] }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}",
    "{{ '{0.__class__}'.format_map({'0': messages}) }}",
    "{{ ('{0.__class__.__mro__}'|attr('format'))(messages) }}",  # CVE-2025-27516
    "{% set f = '{0.__class__.__mro__}'.format %}{{ [messages]|map(f)|list }}",  # CVE-2024-56326
    "{{ raise_exception.__globals__ }}",
    "{{ strftime_now.__globals__['sys'].modules }}",
    "{{ range.__class__.mro() }}",
    "{{ config.__class__.__init__.__globals__ }}",
    "{{ request.application.__globals__ }}",
    "{{ get_flashed_messages.__globals__ }}",
    "{% include '/etc/passwd' %}",
    "{% import '/etc/passwd' as p %}{{ p }}",
    "{% extends '/etc/passwd' %}",
    "{{ messages.append('x') }}",
    "{{ messages[0].update({'role': 'system'}) }}",
    "{{ messages.clear() }}",
]

BOMBS = {
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": "2 seconds",
    "{{ 'x' * 10**11 }}": "memory|Memory",
    "{{ (10 ** (10 ** 10)) }}": "2 seconds|memory",
    "{{ '%10000000000d' % 1 }}": "memory|Memory",
    "{{ 'x'|center(10**11) }}": "memory|Memory",
    "{{ range(10**12)|list }}": "Range too big",
    "{% set n = namespace(a='x' * 1000) %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}{% endfor %}{{ n.a }}": (
        "256 MiB of memory"
    ),
    "{% set n = namespace(a=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a|tojson }}": (
        "2 seconds|memory"
    ),
    "{% for i in range(3000) %}{{ 'x' * 1000 }}{% endfor %}": "writes without end",
    "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}": "calls itself without end",
}


def render(source, messages=MESSAGES, **options):
    return render_template(source, messages, **options)


@pytest.mark.parametrize("source", ESCAPES)
def test_no_way_out_of_the_sandbox(source):
    result = "begin "
    with contextlib.suppress(TemplateError):  # what is forbidden raises, or is not there
        result = render("begin " + source)
    assert result == "begin "


@pytest.mark.parametrize(("source", "reason"), BOMBS.items(), ids=range(len(BOMBS)))
def test_what_takes_too_long_or_too_much_is_stopped(source, reason):
    with pytest.raises(TemplateError, match=reason) as caught:
        render(source)
    assert caught.value.next_step
    assert render("{{ messages[0].role }}") == "user"  # and the next one works


def test_a_template_that_is_not_valid():
    with pytest.raises(TemplateError, match="not valid") as caught:
        render("{% if %}")
    assert not isinstance(caught.value, MessagesRefusedError)


def test_a_refusal_in_the_templates_own_words():
    with pytest.raises(MessagesRefusedError, match=r"refuses these messages: System role not supported\.\n"):
        render("{{ raise_exception('System role not supported.') }}")


def test_a_long_refusal_is_shortened():
    with pytest.raises(MessagesRefusedError) as caught:
        render("{{ raise_exception('x' * 10000) }}")
    assert len(caught.value.message) < 500


def test_a_template_that_stumbles():
    with pytest.raises(MessagesRefusedError, match="UndefinedError"):
        render("{{ messages[0].content.parts[0] }}")


def test_long_messages_are_no_bomb():
    content = "words and more words " * 50_000
    assert render("{{ messages[0].content }}", [{"role": "user", "content": content}]) == content


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ messages[0].content }}", "hi & <b>bye</b>"),
        ("{{ messages[0]['content'] | tojson }}", '"hi & <b>bye</b>"'),
        ("{{ {'b': 1, 'a': '歪'} | tojson(indent=1) }}", '{\n "b": 1,\n "a": "歪"\n}'),
        ("{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "0234"),
        ("{% for i in range(5) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "012"),
        ("  {% if true %}\n  x\n  {% endif %}\ny", "  x\ny"),
        ("{% generation %}{{ messages[0].role }}{% endgeneration %}", "user"),
        ("{{ bos_token }}|{{ eos_token }}|{{ add_generation_prompt }}|{{ tools is none }}", "<s>|</s>|True|True"),
        ("{{ missing }}{% if missing is defined %}x{% endif %}{{ messages[0].tool_calls }}", ""),
        ("{% set n = namespace(x=0) %}{% for m in messages %}{% set n.x = n.x + 1 %}{% endfor %}{{ n.x }}", "1"),
        ("{{ messages[::-1][0].role | upper }}{{ messages | length }}", "USER1"),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(1) }}{{ '%s' % 2 }}{{ '{}'.format(3) }}", "<1>23"),
    ],
)  # fmt: skip
def test_templates_can_do_what_they_can_elsewhere(source, text):
    assert render(source, bos="<s>", eos="</s>") == text


def test_the_date_is_there():
    assert len(render("{{ strftime_now('%d %b %Y') }}")) == len("01 Jan 2030")


def test_texts_of_every_kind_arrive_as_they_are():
    content = "歪 🦙 \x1b]0;x\x07 \u202e \ud83d \r\n \x00 \u2028"
    assert render("{{ messages[0].content }}", [{"role": "user", "content": content}]) == content


def test_without_a_reply_to_come():
    assert render(templates.CHATML, generate=False).endswith("<|im_end|>\n")


def test_the_process_can_die_at_any_time():
    from specchat.decoding import template

    assert render("{{ messages[0].role }}") == "user"
    template._RENDERER._process.kill()
    template._RENDERER._process.wait()
    assert render("{{ messages[0].role }}") == "user"


def test_a_process_that_dies_while_it_renders_is_an_error(monkeypatch):
    from specchat.decoding import template

    monkeypatch.setattr(template, "_excess", lambda process, *_: process.kill())
    with pytest.raises(TemplateError, match="ended"):
        render(next(iter(BOMBS)))


def test_ctrl_c_does_not_reach_it():
    import signal

    from specchat.decoding import template

    render("x")
    template._RENDERER._process.send_signal(signal.SIGINT)
    assert render("{{ messages[0].role }}") == "user"
