from __future__ import annotations

from tests.support.live import Live
from tests.support.visits import FORM, Visitor

from shoal.service.audit import RULES


def test_the_anonymity_page_of_noisy_totals_says_so(live: Live, operator: Visitor) -> None:
    operator.send("/new-campaign", **FORM | {"name": "noisy", "epsilon": "0.25"})
    operator.send("/campaigns/noisy/check")
    page = operator.http.get("/campaigns/noisy/anonymity").text
    assert "Epsilon of the noise, each round</dt><dd>0.25</dd>" in page
    assert "not counted: noise hides them" in page
    assert page.count(">not checked<") == 2
    assert page.count(">nothing released yet<") == len(RULES) - 2
    assert ">holds<" not in page
    assert "No round has been released yet; checked last on" in page
    assert "rules hold" not in page
    assert "2: duplicate report" in page
