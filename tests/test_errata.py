"""Errata that are in the paper's own tables, as the studies hold them."""

from __future__ import annotations

import pytest

from jigsync.studies import main, progression


def test_the_genetic_row_is_repeated() -> None:
    assert main.PAPER["genetic", 3] == main.PAPER["genetic", 5]
    _, aa, _ = main.PAPER["genetic", 5]
    assert aa == pytest.approx(100 / 9, abs=0.05), "chance for nine slots"
    assert aa > 2.5 * 100 / 25, "and far above chance for 25"
    assert main.PAPER["greedy", 3] != main.PAPER["greedy", 5]


def test_no_row_of_the_progression_reaches_the_headline() -> None:
    for n, rows in progression.PAPER.items():
        headline = main.PAPER["jigsync-paper", n][1]
        assert max(aa for _, aa, _ in rows.values()) < 0.7 * headline
        deployable = max(aa for name, (_, aa, _) in rows.items() if not name.startswith("A:"))
        assert deployable == rows[progression.CONDITIONED][1]
