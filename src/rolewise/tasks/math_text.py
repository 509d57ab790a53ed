r"""Math answers as text: one spelling for what TeX, Unicode and habit write in many ways."""

from __future__ import annotations

import re

from rolewise.tasks.math_numbers import plain_number
from rolewise.tasks.math_tex import brace_arguments, join_groups

LONGEST = 10_000

_SYMBOLS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "＋": "+", "＝": "=", "×": r"\times ",
    "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "•": r"\cdot ", "÷": "/", "∕": "/", "⁄": "/",
    "±": r"\pm ", "∓": r"\mp ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ",
    "⩽": r"\le ", "⩾": r"\ge ", "∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "∖": r"\setminus ",
    "∅": r"\emptyset ", "∈": r"\in ", "π": r"\pi ", "𝜋": r"\pi ", "θ": r"\theta ", "α": r"\alpha ",
    "β": r"\beta ", "γ": r"\gamma ", "λ": r"\lambda ", "μ": r"\mu ", "φ": r"\phi ", "ω": r"\omega ",
    "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℚ": r"\mathbb{Q}", "ℕ": r"\mathbb{N}", "°": r"^\circ ",
    "º": r"^\circ ", "′": "'", "’": "'", "‘": "'", "“": '"', "”": '"', "½": r"\frac{1}{2}",
    "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}", "⅙": r"\frac{1}{6}",
    "⅚": r"\frac{5}{6}", "⅛": r"\frac{1}{8}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}",
    "⅞": r"\frac{7}{8}", "∛": r"\sqrt[3]", "∶": ":", "－": "-", "˚": r"^\circ ", "\u200b": "", "\ufeff": "", "\u2061": "",
    "€": r"\text{ euro}", "£": r"\text{ pound}", "％": r"\%", "，": ",", "：": ":", "（": "(", "）": ")",
    "⟨": r"\langle ", "⟩": r"\rangle ", "∣": "|", "…": r"\ldots ", "∧": r"\land ",
}  # fmt: skip
_SYMBOL = re.compile("|".join(map(re.escape, _SYMBOLS)))
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_WIDE_DIGITS = str.maketrans("０１２３４５６７８９", "0123456789")

# What parts groups of three digits and nothing else; a plain comma may also part members.
_THIN = r"\s?(?:\\!?,\\!|\\!,|\\[,;: ]|~|\{(?:,|\\,)\})\s?"
_NUMBER_IN_WORDS = re.compile(r"(?<![\w.,:/^_-])-?\d+(?:[.,:/]\d+)*(?![\w^_]|[.,:/]\d)")

_RULES = [
    (r"^\s*(?:\*+|`+)([^*`].*?)(?:\*+|`+)\s*$", r"\1"),
    (rf"(?<![\d.])[1-9]\d{{0,2}}(?:,\d{{3}}){{0,20}}{_THIN}\d{{3}}(?:(?:,|{_THIN})\d{{3}})*(?!\d)",
     lambda match: re.sub(r"\D", "", match[0])),
    # Sizes and styles say nothing about the value.
    (r"\\(?:left|right)\s*\.", ""),
    (r"\\(?:left|right|middle|[bB]igg?[lrm]?)(?![A-Za-z])\s*", ""),
    (r"\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|rm|bf|it)(?![A-Za-z])\s*", ""),
    (r"\\(?:large|Large|LARGE|huge|Huge|small|ensuremath)(?![A-Za-z])\s*", ""),
    (r"\\(?:text)?color(?:box)?\s*\{[^{}]*\}", ""),
    (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
    (r"\\[dt]binom(?![A-Za-z])", r"\\binom"),
    (r"\\!|\\[hv]?phantom\s*\{[^{}]*\}", ""),
    (r"\{,\}", ","),
    (r"\\\$", r"\\text{ dollar }"),
    (r"\\(pound|euro)s?(?![A-Za-z])", r"\\text{ \1 }"),
    (r"\$|\\\(|\\\)|(?<!\\)\\\[|\\\](?![A-Za-z])", ""),
    # Only now are blanks few, so that no later rule is quadratic in them.
    (r"(?:(?<!\\)\\[,;: ]|[~\s]|\\(?:q?quad|enspace)(?![A-Za-z])|\\[hv]space\s*\{[^{}]*\})+", " "),
    (r"(?<![\d'])(\d{1,3})'(\d{3})(?!\d)", r"\1,\2"),
    (r"(?<=\d)\s*[xX*]\s*(?=10\s*\^)", r"\\times "),
    (r"(?<=\d)\s*(\\text\{)?\s*(?:thousand)(?![A-Za-z])", r"\\times 10^{3}\1"),
    (r"(?<=\d)\s*(\\text\{)?\s*(?:million)(?![A-Za-z])", r"\\times 10^{6}\1"),
    (r"(?<=\d)\s*(\\text\{)?\s*(?:billion)(?![A-Za-z])", r"\\times 10^{9}\1"),
    (r"\.(\d*)\\dot\s*\{?(\d)\}?(?!\d)", r".\1\\overline{\2}"),
    # Synonyms.
    (r"\\(?:leq|leqslant)(?![A-Za-z])", r"\\le "),
    (r"\\(?:geq|geqslant)(?![A-Za-z])", r"\\ge "),
    (r"\\lt(?![A-Za-z])", "<"),
    (r"\\gt(?![A-Za-z])", ">"),
    (r"<=", r"\\le "),
    (r">=", r"\\ge "),
    (r"!=|\\neq(?![A-Za-z])", r"\\ne "),
    (r"\\(?:varnothing|O)(?![A-Za-z])", r"\\emptyset "),
    (r"\\(?:bigcup|sqcup)(?![A-Za-z])", r"\\cup "),
    (r"\\(?:backslash|smallsetminus)(?![A-Za-z])", r"\\setminus "),
    (r"\\(?:lvert|rvert|vert)(?![A-Za-z])", "|"),
    (r"\\(?:lbrace|\{)", r"\\{"),
    (r"\\(?:rbrace|\})", r"\\}"),
    (r"\\(?:lbrack)(?![A-Za-z])", "["),
    (r"\\(?:rbrack)(?![A-Za-z])", "]"),
    (r"\\(?:bullet|ast)(?![A-Za-z])", r"\\cdot "),
    (r"\\(?:lor|vee)(?![A-Za-z])", r"\\text{ or }"),
    (r"\\(?:land|wedge)(?![A-Za-z])", r"\\text{ and }"),
    (r"\\(?:dots|cdots|dotsc)(?![A-Za-z])", r"\\ldots "),
    (r"\\degree(?![A-Za-z])", r"^\\circ "),
    (r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))", r"^\\circ "),
    (r"(?<!\\)%|\\(?:text|mathrm)\{\s*\\?%\s*\}", r"\\%"),
    (r"\*\*", "^"),
    (r"\^\s*(\w+)\s*\^\s*(\w+)", r"^{\1^{\2}}"),
    (r"(?<!\\)\binfinity\b", r"\\infty "),
    (r"\\lg(?![A-Za-z])", r"\\log_{10}"),
    (r"(?<![\\A-Za-z])(sqrt|pi|sin|cos|tan|ln|log)(?![A-Za-z])", r"\\\1 "),
    (r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
    (r"\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}", r"\\binom{\1}{\2}"),
    (r"\\operatorname\*?\s*\{((?:arc)?(?:sin|cos|tan)|ln|log|exp)\}", r"\\\1 "),
    (r"(?<=[\d)}])\s*percent(?![A-Za-z])", r"\\%"),
    (r"\\frac\{\\(?:text|mathrm)\{([A-Za-z ]+)\}\}\{\\(?:text|mathrm)\{([A-Za-z ]+)\}\}",
     r"\\text{ \1/\2}"),
]  # fmt: skip
_RULES_BEHIND_FONTS = [
    (r"\\text\{\s*(?:%|\\%|percent)\s*\}", r"\\%"),
    (r"\+\s*\\text\{\s*const(?:ant|\.)?\s*\}$", "+C"),
]
_COMPILED = [(re.compile(pattern), new) for pattern, new in _RULES]
_COMPILED_BEHIND_FONTS = [(re.compile(pattern), new) for pattern, new in _RULES_BEHIND_FONTS]
_CASES = re.compile(r"\\begin\{cases\}([^&]*)\\end\{cases\}")
_FONT = re.compile(
    r"\\(?P<name>text(?:bf|it|rm|sf|tt|normal|up)?|math(?:rm|bf|it|sf|tt|normal)|mbox|hbox|emph"
    r"|boldsymbol|bm|pmb|underline|operatorname|fbox)\s*\{(?P<body>[^{}]*)\}"
)
_OUTER_FONT = re.compile(
    r"\\(?:text(?:bf|it|sf|tt)|math(?:rm|bf|it|sf|tt|normal)|emph|boldsymbol|bm|pmb|underline|fbox)"
    r"\s*(?=\{)"
)
_UNIT_FONT = re.compile("text(?:rm|normal|up)?|mathrm|mbox")
_NUMBER_END = re.compile(r"(?:[\d})]|\\pi)\s*$")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z]{2}")
_TRAILING = " \t\r\n.,;:"


def tidy(text: str) -> str:
    """`text` in one spelling, with the same meaning; text in words is kept as `\\text{...}`."""
    if not text.isascii():
        text = _from_unicode(text)
    text = " ".join(text.split())
    if not text.isdigit():
        for pattern, new in _COMPILED:
            text = pattern.sub(new, text)
        text = brace_arguments(_plain_fonts(text))
        for pattern, new in _COMPILED_BEHIND_FONTS:
            text = pattern.sub(new, text)
        text = _CASES.sub(lambda match: match[1].replace(r"\\", ", "), text)
    return _trim(join_groups(" ".join(text.split())))


def squeeze(text: str) -> str:
    """`text` without the blanks that separate nothing."""
    return re.sub(r" (?![A-Za-z0-9])|(?<![A-Za-z0-9]) ", "", text)


def compare_plain(answer: str, truth: str, *, exact: bool) -> bool | None:
    """Whether two answers are equal, where text and plain numbers can tell; else None.

    `exact`: equality of the tidied texts is all, so the result is never None.
    """
    if answer == truth:
        return True
    if len(answer) > LONGEST or len(truth) > LONGEST:
        return answer.split() == truth.split()
    answer, truth = tidy(answer), tidy(truth)
    if squeeze(answer) == squeeze(truth):
        return True
    if exact:
        return False
    numbers = plain_number(answer), plain_number(truth)
    return None if None in numbers else numbers[0] == numbers[1]


def unbrace(text: str) -> str:
    """`text` without braces around the whole of it."""
    for _ in range(8):
        if not (text.startswith("{") and text.endswith("}") and closing(text, 0) == len(text) - 1):
            break
        text = text[1:-1].strip()
    return text


def closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`, -1 if none; any bracket kind matches."""
    depth = 0
    i = start
    while i < len(text):
        char = text[i]
        if char == "\\" and text[i + 1 : i + 2] not in ("{", "}"):
            i += 1
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return i
        i += 1
    return -1


def _from_unicode(text: str) -> str:
    text = re.sub(r"[\u2009\u202f]+", r"\\,", text)
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+", lambda m: f"^{{{m[0].translate(_RAISED)}}}", text)
    text = re.sub(r"[₀₁₂₃₄₅₆₇₈₉]+", lambda m: f"_{{{m[0].translate(_LOWERED)}}}", text)
    text = re.sub(r"([√∛])\s*(\d+|[A-Za-z])", r"\1{\2}", text).replace("√", r"\sqrt")
    return _SYMBOL.sub(lambda m: _SYMBOLS[m[0]], text.translate(_WIDE_DIGITS))


def _plain_fonts(text: str) -> str:
    """Fonts vanish around formulas; around words they become `\\text{...}`, blanks kept."""

    def replace(match: re.Match[str]) -> str:
        body, name = match["body"], match["name"]
        if not body.strip():
            return " "
        before = match.string[max(0, match.start() - 8) : match.start()]
        unit = _UNIT_FONT.fullmatch(name) and _NUMBER_END.search(before)
        letter = name == "mathrm" and body in ("d", "e", "i")
        if _WORD.search(_COMMAND.sub("", body)) or (
            unit and not letter and re.search("[A-Za-z]", body)
        ):
            return "\x00" + _NUMBER_IN_WORDS.sub("\x01\\g<0>\x00", body) + "\x01"
        return body if name.startswith("text") else f"{{{body}}}"

    for _ in range(4):
        text, count = _FONT.subn(replace, text)
        if not count:
            break
    text = re.sub("\x00\\s*\x01", " ", _OUTER_FONT.sub("", text))
    return text.replace("\x00", "\\text{").replace("\x01", "}")


def _trim(text: str) -> str:
    """Without outer braces, blanks and punctuation; a dot stays where a number needs it."""
    while True:
        shorter = unbrace(text.strip(" ")).rstrip(_TRAILING).removesuffix("\\").rstrip(_TRAILING)
        if shorter == text:
            return text
        text = shorter
