"""Vocabularies that show what prompt building does: every byte is a token, some neighbours merge, some are control."""

import re

MERGES = ("\n\n", "\nhello", "> ", " a", "im_", "<|")


class FakeVocabulary:
    """Ids 0–255 are bytes, then come `MERGES`, then the control tokens.

    With ``adds_space`` a space is put before every text and after every control token, as SentencePiece models do.
    With ``leads_back`` ordinary text that spells a control token becomes it, as merging can.
    """

    def __init__(
        self, template, control=("<|im_start|>", "<|im_end|>"), *, bos=None, add_bos=False, adds_space=False,
        leads_back=False,
    ):  # fmt: skip
        self.chat_template = template
        self.add_bos = add_bos
        self.pieces = [bytes([i]) for i in range(256)] + [text.encode() for text in MERGES]
        self.first_control = len(self.pieces)
        self.pieces += [text.encode() for text in control]
        self.control_texts = frozenset(control)
        self.n_vocab = len(self.pieces)
        self.bos = None if bos is None else self.id(bos)
        self.eos = None
        self.adds_space = adds_space
        self.leads_back = leads_back

    def id(self, text):
        return self.pieces.index(text.encode())

    def tokenize(self, text, *, parse_special):
        ids = []
        parts = [text]
        if parse_special and self.control_texts:
            longest_first = sorted(self.control_texts, key=len, reverse=True)
            parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
        for part in parts:
            if part in self.control_texts and (parse_special or self.leads_back):
                ids.append(self.id(part))
            elif part:
                ids += self._plain((" " if self.adds_space else "") + part)
        return ids

    def _plain(self, text):
        merges = "|".join(map(re.escape, MERGES))
        ids = []
        for part in re.findall(f"{merges}|.", text, re.DOTALL):
            ids += [self.id(part)] if part in MERGES else list(part.encode())
        return ids

    def piece(self, token):
        return self.pieces[token]

    def is_control(self, token):
        return token >= self.first_control

    def is_end(self, token):
        return self.is_control(token)

    def control_ids(self, tokens):
        return [token for token in tokens if self.is_control(token)]

    def text(self, tokens):
        return b"".join(map(self.piece, tokens)).decode("utf-8", "replace")
