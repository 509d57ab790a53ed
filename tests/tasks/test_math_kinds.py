r"""Kinds of answers that were once judged wrongly, each with examples for both verdicts."""

import pytest

from rolewise.tasks.math_equivalence import equivalent
from rolewise.tasks.math_text import compare_plain

EQUAL = {
    "juxtaposition is a product": [
        ("2(3)", "6"), ("3(4)", "12"), ("2{3}", "6"), ("(2)(3)", "6"), ("(2)3", "6"), ("-2(3)", "-6"),
        (r"2\left(\frac35\right)", r"\frac65"), ("2(3)(4)", "24"), (r"2\binom{5}{2}", "20"),
        (r"2\frac{1}{3}", r"\frac73"), ("2 1/3", r"\frac73"), (r"x+2\frac{1}{3}", r"x+\frac73"),
        (r"\log_{2}(8)", "3"), (r"\sin^2(x)", r"(\sin x)^2"), ("10^2(3)", "300"),
        (r"(1)\cdot 2\frac13+1", r"\frac{10}{3}"),
    ],
    "values are exact at every size": [
        (r"\sqrt{10^{100}}", "10^{50}"), (r"10^{50}+\sqrt8", r"10^{50}+2\sqrt2"),
        ("2^{300}x+1", "1+2^{299}(x+x)"), (r"\frac{10^{60}x+x}{x}", "10^{60}+1"),
        (r"\sqrt{10^{40}+2\cdot10^{20}+1}", "10^{20}+1"), ("(x+10^{-30})^2", r"x^2+2\\cdot10^{-30}x+10^{-60}"),
    ],
    "TeX takes one token for an argument": [
        (r"\frac\pi2", r"\frac{\pi}{2}"), (r"\tfrac\pi6", r"\frac{\pi}{6}"), (r"\frac\pi{4}", r"\pi/4"),
        (r"\frac1\pi", r"1/\pi"), (r"\frac ab", "a/b"), (r"\frac{a}b", "a/b"), (r"\frac1x", "1/x"),
        (r"\frac x2", "x/2"), (r"\frac{\sqrt{3}}2", r"\frac{\sqrt{3}}{2}"), (r"\sqrt\pi", r"\sqrt{\pi}"),
        (r"\sqrt[3]2", r"\sqrt[3]{2}"), (r"\sqrt\frac12", r"\sqrt{\frac{1}{2}}"),
        (r"\sqrt xy", r"\sqrt{x}y"), (r"\log_28", "3"), (r"\arcsin\frac12", r"\frac\pi6"),
        (r"\frac{\frac12}3", r"\frac16"), (r"\frac\frac123", r"\frac16"), (r"x^\frac12", r"\sqrt x"),
        (r"\binom52", "10"), (r"\frac12^2", r"\frac14"), ("2^10", "1024"), (r"e^\pi", r"e^{\pi}"),
        (r"x_12", r"x_{12}"), ("10^-3", "0.001"),
        ("x^-2", "x^{-2}"), ("x1", "x_1"), ("2x1+x2", "x_2+2x_1"), (r"\frac{\text{total}}2", r"\frac{\text{total}}{2}"),
    ],
    "digits in groups are one number anywhere": [
        (r"1,000\pi", r"1000\pi"), ("1,000+1", "1001"), ("2,500 + 3,000", "5,500"),
        (r"\sqrt{1{,}000{,}000}", "1000"), (r"1{,}000\text{ m}", r"1\text{ km}"),
        ("10{,}000x", "10000x"), ("12,480, 3", "3, 12480"), ("1{,}000, 2{,}000", "2000,1000"),
        (r"\{1,000, 2,000\}", r"\{1000,2000\}"), (r"[1,000,\infty)", r"x\ge 1000"),
        ("(1,000, 2,000)", "(1000,2000)"), ("1,000:2,000", "1:2"), (r"\$1\,000\,000", "10^6"),
        (r"12,\!480x", "12480x"), ("12\u2009480+1", "12481"), (r"1{,}000,000", "1000000"),
    ],
    "letters of a formula are no units": [
        (r"2\pi rh", r"2\pi hr"), (r"\frac13\pi r^2h", r"\frac13\pi hr^2"), ("2mg", "2gm"),
        (r"2\pi m", r"2m\pi"), ("5 h", "5"), (r"36\pi cm^3", r"36\pi"), ("12.5 kg", r"12.5\text{ kg}"),
        (r"2\pi\text{ m}", r"2\pi"), ("2 m", "2m"),
    ],
    "odd roots of negatives are real": [
        (r"\sqrt[3]{-8}", "-2"), (r"\sqrt[5]{-32}", "-2"), ("(-8)^{1/3}", "-2"),
        (r"(-8)^{\frac23}", "4"), (r"\sqrt[3]{-2}", r"-\sqrt[3]{2}"), (r"\sqrt{-4}", "2i"),
        (r"(-27)^{-1/3}", r"-\frac13"),
    ],
    "row ends of matrices": [
        (r"\begin{pmatrix}1\\[4pt]2\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
        (r"\begin{pmatrix}1\cr 2\cr\end{pmatrix}", r"\begin{bmatrix}1\\2\end{bmatrix}"),
        (r"2\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\4\end{pmatrix}"),
    ],
    "large values that cancel": [
        (r"\frac{1}{10^{400}}", "10^{-400}"), (r"\frac{1}{10^{400}}", "1e-400"),
        (r"\frac{200!}{199!}", "200"), (r"\frac{10^{500}}{10^{499}}", "10"),
    ],
    "percent, units and degrees": [
        ("37.5 percent", r"37.5\%"), (r"\text{14 cm}", "14"), (r"\text{50 percent}", r"\frac12"),
        (r"30\frac{\text{m}}{\text{s}}", r"30\text{ m/s}"), (r"180^\circ - 45^\circ", r"135^\circ"),
        ("45˚", r"45^\circ"),
    ],
    "lists in words": [
        (r"\text{1 and 2}", "1,2"), (r"\text{-2 and 7}", "7,-2"), ("red, blue", "blue, red"),
        (r"\text{red and blue}", "blue, red"), (r"\text{2, 3, or 5}", "5,3,2"),
        (r"\begin{cases}x=1\\y=2\end{cases}", "x=1,y=2"), ("7=x", "7"), (r"1-0.\overline{3}", "2/3"),
    ],
    "wrappers say nothing": [
        (r"\fbox{24}", "24"), (r"\colorbox{yellow}{24}", "24"), (r"24\hphantom{0}", "24"),
        (r"24\vphantom{\big|}", "24"), (r"24\enspace", "24"), ("*24*", "24"), (r"\mathbf{\frac12}", "1/2"),
        (r"\operatorname{arctan}(1)", r"\frac\pi4"), ("－18", "-18"), ("⅚", "5/6"), ("⅜", "3/8"),
        ("∛8", "2"), ("1∶2", "1:2"),
    ],
    "other spellings": [
        (r"\frac{x^3}{3}-C", r"\frac{x^3}{3}+C"), (r"\frac{x^3}{3}+\text{constant}", r"\frac{x^3}{3}+C"),
        (r"{5 \choose 2}", "10"), (r"\max\{2,5\}", "5"), ("]2,5[", "(2,5)"), ("[2,5[", r"2\le x<5"),
        (r"]-\infty,2]\cup[5,+\infty[", r"x\le2\text{ or }x\ge5"),
    ],
}  # fmt: skip
DIFFERENT = {
    "juxtaposition is a product": [
        ("2(3)", "5"), ("3(4)", "7"), ("2 3", "5"), ("2 3", "6"), ("1 2", "3"), ("2{3}", "5"),
        ("(2)(3)", "5"), ("(2)3", "5"), ("-2(3)", "-5"), (r"2\left(\frac35\right)", r"\frac{13}{5}"),
        ("2(3)(4)", "9"), (r"2\binom{5}{2}", "12"), (r"2\frac{1}{3}", r"\frac23"), ("2 3x", "6x"),
    ],
    "values are exact at every size": [
        (r"10^{50}+\sqrt2", r"10^{50}+\sqrt3"), ("10^{60}+x", "10^{60}"), ("2^{300}x+1", "2^{300}x+2"),
        (r"10^{100}+\pi", "10^{100}+e"), (r"\sqrt2+10^{-45}", r"\sqrt2"), ("x+10^{-50}", "x"),
        (r"\sqrt{10^{100}+1}", "10^{50}"), ("(x+10^{-50})^2", "x^2"), ("1+e^{-200}", "1"),
        (r"\sqrt{1+e^{-200}}", "1"), (r"\sqrt2(10^{50}+\sqrt2)", r"\sqrt2(10^{50}+\sqrt3)"),
        (r"\sin(x)+10^{-60}", r"\sin(x)"), (r"10^{60}i+1", r"10^{60}i+2"),
    ],
    "ratios": [
        ("1:2:3", "1"), ("3:2:1", "3"), ("5:3:2", "5/1"), ("1:2:3", "1:2"), ("1", "1:2:3"),
        ("1:2", "1:2:3"),
    ],
    "TeX takes one token for an argument": [
        (r"\frac\pi2", r"\frac2\pi"), (r"\sqrt xy", r"\sqrt{xy}"), (r"\frac123", r"\frac{1}{23}"),
        (r"\log_28", "8"), (r"\frac{1}", "1"), (r"\sqrt", "0"), (r"x^2y", "x^{2y}"),
        (r"2^10", "20"), ("x1", "x"), ("21_3", "21_2"), ("10^-3", "10^3"),
    ],
    "digits in groups are one number anywhere": [
        ("0,123", "123"), ("1,2345", "12345"), ("(1,200)", "1200"), ("1, 234", "1234"),
        (r"\{100,200\}", "100200"), ("12,480, 3", "12, 480, 3"), ("1,000+1", "1"), ("3,17", "317"),
    ],
    "letters of a formula are no units": [
        (r"2\pi h", r"2\pi"), (r"\pi h", r"\pi"), (r"3\pi s", r"3\pi"), (r"2\pi hr", r"2\pi"),
        (r"\frac13\pi r^2h", r"\frac13\pi r^2"), ("2mg", "2g"), ("14 cm", "14 m"),
    ],
    "odd roots of negatives are real": [
        (r"\sqrt[3]{-8}", "2"), (r"\sqrt{-4}", "2"), (r"\sqrt{-4}", "-2"), (r"\sqrt[4]{-16}", "-2"),
    ],
    "row ends of matrices": [
        (r"2\begin{pmatrix}1\\2\end{pmatrix}", "x"), ("5", r"2\begin{pmatrix}1\\2\end{pmatrix}"),
        (r"\begin{pmatrix}1\\[4pt]2\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}"),
        (r"2\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\5\end{pmatrix}"),
    ],
    "large values that cancel": [
        (r"\frac{1}{10^{400}}", "10^{-401}"), (r"\frac{1}{10^{400}}", "n^2+n"),
        (r"\frac{1}{10^{400}}", "0"), (r"\frac{200!}{199!}", "199"),
    ],
    "percent, units and degrees": [
        ("37.5 percent", "37.5"), (r"\text{14 cm}", "15"), (r"180^\circ - 45^\circ", "180"),
        (r"180^\circ - 45^\circ", "135^2"), (r"30\frac{\text{m}}{\text{s}}", r"30\text{ m}"),
    ],
    "lists in words": [
        (r"\text{1 and 2}", "1"), ("red, blue", "red"), ("red, blue", "red, green"), ("C'", "C"),
        ("y'", "y"), ("7=x", "8"), ("2x=x", "2x"), (r"\begin{cases}x=1\\y=2\end{cases}", "x=1"),
        ("7=2x", "7"),
    ],
    "wrappers say nothing": [
        (r"\fbox{24}", "25"), (r"\hphantom{24}", "24"), ("2*4*", "24"), (r"\mathbf{\frac12}", "12"),
    ],
    "other spellings": [
        (r"\frac{x^3}{3}-C", r"\frac{x^3}{3}"), (r"\text{constant}", "C"), ("]2,5[", "[2,5]"),
        ("]2,5]", "(2,5)"), (r"{5 \choose 2}", r"\frac52"), (r"\max\{2,5\}", "2"),
    ],
}  # fmt: skip


def _cases(kinds):
    return [
        pytest.param(*pair, id=f"{kind}: {pair[0]} | {pair[1]}")
        for kind, pairs in kinds.items()
        for pair in pairs
    ]


@pytest.mark.parametrize(("answer", "truth"), _cases(EQUAL))
def test_equal_answers_are_equal_in_either_order(answer, truth):
    assert equivalent(answer, truth)
    assert compare_plain(answer, truth, exact=False) in (None, True)


@pytest.mark.parametrize(("answer", "truth"), _cases(DIFFERENT))
def test_different_answers_differ(answer, truth):
    assert not equivalent(answer, truth)
    assert compare_plain(answer, truth, exact=False) in (None, False)
