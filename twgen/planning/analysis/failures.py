"""How a ratio of failures is tested: exact for ten workflows as for ten thousand, however often one looks.

The test is a mixture of likelihood ratios. While the true ratio is at most the bound, the mean below is a
nonnegative supermartingale that begins at 1, so it reaches `1 / false_alarms` with at most that probability
over all looks together (Ville's inequality). What still runs counts as started: quick failures do not look
like many.
"""

import math
from functools import lru_cache

from twgen.model.analysis import Failures, Judgement, Verdict, WorkflowFailures
from twgen.model.problem import counted

_ALTERNATIVES = 24
"""Ratios that the bound is tested against, spaced evenly in log-odds."""
_WORST = 0.95
"""The largest of them."""
_CONFIDENCE = 0.99
"""Of the upper bound of a ratio that was counted."""
_LEAST_BOUND = 0.001
"""What a version that never failed is taken to allow."""
_PRECISION = 1e-12
_LEAST_SHOWN = 0.0001
_COMPARABLE = 10
"""With fewer workflows of the current version, a wide bound comes from their number, not from the version."""
_WIDE = 0.5


def false_alarm(failed: int, started: int, bound: float) -> float:
    """How probable it was, over all looks so far, that a version at the bound looks as bad as this.

    A bound of 1 or of what is tested against at most says nothing: 1.
    """
    return math.exp(min(0.0, -_evidence(failed, started, bound)))


def upper_bound(failed: int, started: int) -> float:
    """The largest ratio that so many failures still fit, with 99% confidence; at least 0.001.

    One-sided, by Clopper and Pearson (https://doi.org/10.1093/biomet/26.4.404).
    """
    if failed >= started:
        return 1.0
    low, high = failed / started, 1.0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(failed, started, middle) > 1 - _CONFIDENCE else (low, middle)
    return max(high, _LEAST_BOUND)


def probability(failed: int, started: int, ratio: float) -> float:
    """How probable it is that exactly so many fail, at a ratio above 0 and below 1."""
    choose = math.lgamma(started + 1) - math.lgamma(failed + 1) - math.lgamma(started - failed + 1)
    return math.exp(choose + failed * math.log(ratio) + (started - failed) * math.log1p(-ratio))


def judged_failures(name: str, asked: WorkflowFailures, found: Failures, *, is_last: bool) -> Judgement:
    """The verdict on the workflows that failed."""
    bound = asked.max_ratio
    if bound is None:
        if not found.current:
            return Judgement(name, Verdict.UNDECIDED, "the current version was not measured")
        bound = upper_bound(found.current.failed, found.current.started)
    failed, started = found.target.failed, found.target.started
    ratio = failed / started if started else 0.0
    alarm = false_alarm(failed, started, bound)
    because = f"{failed} of {started} failed ({100 * ratio:.3g}%), bound {100 * bound:.3g}%"
    if alarm <= asked.false_alarms:
        # less is of little use to people
        chance = f"{100 * alarm:.2g}%" if alarm >= _LEAST_SHOWN else "below 0.01%"
        because = f"{because}, chance of a false alarm {chance}"
        return Judgement(name, Verdict.FAILS, because, ratio, bound)
    compared = found.current if asked.max_ratio is None else None
    if failed and compared and bound > _WIDE and compared.started < _COMPARABLE:
        few = counted(compared.started, "workflow")
        because = f"{because}; only {few} started on the current version, too few to compare with"
        return Judgement(name, Verdict.UNDECIDED, because, ratio, bound)
    if is_last and started < asked.at_least:
        because = f"{because}; at least {asked.at_least} must start before the last step ends"
        return Judgement(name, Verdict.UNDECIDED, because, ratio, bound)
    return Judgement(name, Verdict.PASSES, because, ratio, bound)


def _evidence(failed: int, started: int, bound: float) -> float:
    """The logarithm of the mean likelihood ratio of all alternatives against the bound."""
    ratios = [failed * fails + (started - failed) * goes_well for fails, goes_well in _alternatives(bound)]
    if not ratios:
        return -math.inf
    largest = max(ratios)
    return largest + math.log(sum(math.exp(ratio - largest) for ratio in ratios) / len(ratios))


@lru_cache(maxsize=64)
def _alternatives(bound: float) -> tuple[tuple[float, float], ...]:
    """What one failure, and one workflow that did not fail, adds to the evidence for each alternative."""
    if not 0 < bound < _WORST:
        return ()
    first, last = math.log(bound / (1 - bound)), math.log(_WORST / (1 - _WORST))
    odds = (first + (last - first) * step / _ALTERNATIVES for step in range(1, _ALTERNATIVES + 1))
    ratios = [1 / (1 + math.exp(-one)) for one in odds]
    return tuple((math.log(one / bound), math.log((1 - one) / (1 - bound))) for one in ratios)


def _at_most(failed: int, started: int, ratio: float) -> float:
    """How probable it is that at most so many fail; the ratio is above `failed / started`."""
    total = term = probability(failed, started, ratio)
    # each term is smaller than the one before: some hundred are enough, of millions
    for count in range(failed, 0, -1):
        term *= count * (1 - ratio) / ((started - count + 1) * ratio)
        total += term
        if term <= total * _PRECISION:
            break
    return total
