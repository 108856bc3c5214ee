"""Any text as LaTeX that pdflatex takes with its own fonts: titles, notes, citations, names, lines of a log."""

from __future__ import annotations

import re
import unicodedata

SYMBOLS = """
Δ Delta ∆ Delta Γ Gamma Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Φ Phi Ψ Psi Ω Omega α alpha β beta γ gamma δ delta ε epsilon
ζ zeta η eta θ theta ι iota κ kappa λ lambda μ mu ν nu ξ xi π pi ρ rho σ sigma τ tau υ upsilon φ phi χ chi ψ psi ω omega
± pm ∓ mp × times ÷ div · cdot ⋅ cdot ∗ ast ∘ circ • bullet ⊕ oplus ⊗ otimes ⊙ odot √ surd ∂ partial ∇ nabla ∑ sum
∏ prod ∫ int ∞ infty ℓ ell ≤ leq ≥ geq ≠ neq ≡ equiv ≈ approx ≃ simeq ≅ cong ∼ sim ∝ propto ≪ ll ≫ gg ∈ in ∉ notin
∅ emptyset ⊂ subset ⊆ subseteq ∪ cup ∩ cap ∧ wedge ∨ vee ¬ neg ∀ forall ∃ exists ‖ Vert ∥ parallel ⟨ langle ⟩ rangle
↑ uparrow ↓ downarrow → rightarrow ← leftarrow ↔ leftrightarrow ⇒ Rightarrow ⇐ Leftarrow ⇔ Leftrightarrow
"""
"""Characters that are a command of mathematics, each before its command."""
SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#",
    "$": r"\$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "[": "{[}", "*": "{*}",  # at the start of a row they would belong to the end of the one before
    '"': "''", "“": "``", "”": "''", "„": ",,", "«": "``", "»": "''", "‘": "`", "’": "'", "‚": ",", "‹": "`",
    "›": "'", "′": "$'$", "…": r"\dots{}", "–": "--", "—": "---", "‐": "-", "−": "$-$", "⁻": "$^-$", "⁄": "/",
    "†": r"$^\dagger$", "‡": r"$^\ddagger$", "°": r"$^\circ$", "§": r"\S{}", "©": r"\copyright{}",
    "£": r"\pounds{}", "€": "EUR", "¿": "?`", "¡": "!`", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "ħ": "h",
    "Ħ": "H", "þ": "th", "Þ": "Th", "ŋ": "ng", "Ŋ": "Ng", "ŧ": "t", "Ŧ": "T", "ĸ": "k",
    **{character: f"$^{power}$" for power, character in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{character: f"$_{index}$" for index, character in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{character: rf"$\{name}$" for character, name in re.findall(r"(\S) (\w+)", SYMBOLS)},
}  # fmt: skip
_ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
LETTERS = {
    letter
    for letter in map(chr, range(0xC0, 0x180))
    if letter in "ßæÆøØœŒłŁı" or unicodedata.normalize("NFD", letter)[1:] in tuple(_ACCENTS)
}
"""Letters beyond ASCII that TeX's first font encoding (OT1) has, or makes with an accent; an ogonek it lacks."""


def escape(text: str) -> str:
    r"""Make any text printable: ``LocalSGDM_RL`` and ``100 %`` as well as ``±`` and ``ρ``.

    Line breaks and other blanks become one space: a blank line would end a caption. A letter that the fonts lack
    becomes its base letter, any other such character a question mark.
    """
    line = re.sub(r"\s+", " ", unicodedata.normalize("NFC", text))
    parts = ["".join(map(_printable, part)) for part in line.split("--")]
    return "-{}-".join(parts)  # two hyphens stay two: the ligature would make an option's name a dash


def _printable(character: str) -> str:
    if character in SPECIAL:
        return SPECIAL[character]
    if " " <= character <= "~" or character in LETTERS:
        return character
    if unicodedata.category(character) in ("Mn", "Cf"):  # an accent alone, or a mark that is not seen
        return ""
    parts = unicodedata.normalize("NFKD", character)
    return "".join(SPECIAL.get(part, part if " " <= part <= "~" else "") for part in parts) or "?"


def label_text(text: str) -> str:
    """Escape a heading, setting "p = 4" and other one-letter settings in mathematics."""
    parts = re.split(r"\b([A-Za-z] = -?[0-9.]+)", text)
    return "".join(f"${part}$" if i % 2 else escape(part) for i, part in enumerate(parts))


def breakable(text: str) -> str:
    r"""Escape text and let a line end within paths and other long words."""
    return re.sub(r"\S{25,}", lambda word: re.sub(r"(/|\\_)", r"\1\\allowbreak{}", word[0]), escape(text))
