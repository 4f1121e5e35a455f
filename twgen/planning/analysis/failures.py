"""The test of a ratio of failures: exact for ten workflows and for ten thousand, after any number of looks.

The test is a mixture of likelihood ratios. While the true ratio is at most the bound, the mean below is a
nonnegative supermartingale that begins at 1, so it reaches `1 / false_alarms` with at most the probability
`false_alarms` over all looks together (Ville's inequality). Running workflows count as started, so that quick
failures do not look like many.
"""

import math
from functools import lru_cache

from twgen.model.analysis import Failures, Judgement, Verdict, WorkflowFailures
from twgen.model.problem import counted

_ALTERNATIVES = 24
"""The number of ratios against which the bound is tested, spaced evenly in log-odds."""
_WORST = 0.95
"""The largest of these ratios."""
_CONFIDENCE = 0.99
"""The confidence in the upper bound of a counted ratio."""
_LEAST_BOUND = 0.001
"""The bound from a version that never failed."""
_PRECISION = 1e-12
_LEAST_SHOWN = 0.0001
_COMPARABLE = 10
"""With fewer workflows of the current version, a wide bound comes from their number, not from the version."""
_WIDE = 0.5


def false_alarm(failed: int, started: int, bound: float) -> float:
    """The probability, over all looks so far, that a version at the bound looks as bad as this.

    With a bound that is not below the largest alternative there is no test: 1.
    """
    ratios = [failed * fails + (started - failed) * goes_well for fails, goes_well in _alternatives(bound)]
    if not ratios:
        return 1.0
    largest = max(ratios)
    # the logarithm of the mean likelihood ratio of all alternatives against the bound
    evidence = largest + math.log(sum(math.exp(ratio - largest) for ratio in ratios) / len(ratios))
    return math.exp(min(0.0, -evidence))


def upper_bound(failed: int, started: int) -> float:
    """The largest ratio that still fits this number of failures, with 99% confidence; at least 0.001.

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
    """The probability that exactly this many fail, at a ratio above 0 and below 1."""
    choose = math.lgamma(started + 1) - math.lgamma(failed + 1) - math.lgamma(started - failed + 1)
    return math.exp(choose + failed * math.log(ratio) + (started - failed) * math.log1p(-ratio))


def judged_failures(name: str, measure: WorkflowFailures, failures: Failures, *, is_last: bool) -> Judgement:
    """The verdict on the workflows that failed."""
    bound = measure.max_ratio
    if bound is None:
        if not failures.current:
            return Judgement(name, Verdict.UNDECIDED, "the current version was not measured")
        bound = upper_bound(failures.current.failed, failures.current.started)
    failed, started = failures.target.failed, failures.target.started
    ratio = failed / started if started else 0.0
    alarm = false_alarm(failed, started, bound)
    because = f"{failed} of {started} failed ({100 * ratio:.3g}%), bound {100 * bound:.3g}%"
    if alarm <= measure.false_alarms:
        # a smaller number is of little use to people
        chance = f"{100 * alarm:.2g}%" if alarm >= _LEAST_SHOWN else "below 0.01%"
        because = f"{because}, chance of a false alarm {chance}"
        return Judgement(name, Verdict.FAILS, because, ratio, bound)
    compared = failures.current if measure.max_ratio is None else None
    if failed and compared and bound > _WIDE and compared.started < _COMPARABLE:
        few = counted(compared.started, "workflow")
        because = f"{because}; only {few} started on the current version, too few to compare with"
        return Judgement(name, Verdict.UNDECIDED, because, ratio, bound)
    if is_last and started < measure.at_least:
        because = f"{because}; at least {measure.at_least} must start before the last step ends"
        return Judgement(name, Verdict.UNDECIDED, because, ratio, bound)
    return Judgement(name, Verdict.PASSES, because, ratio, bound)


@lru_cache(maxsize=64)
def _alternatives(bound: float) -> tuple[tuple[float, float], ...]:
    """The evidence for each alternative that one failure, and one workflow without failure, adds."""
    if not 0 < bound < _WORST:
        return ()
    first, last = math.log(bound / (1 - bound)), math.log(_WORST / (1 - _WORST))
    odds = (first + (last - first) * step / _ALTERNATIVES for step in range(1, _ALTERNATIVES + 1))
    ratios = [1 / (1 + math.exp(-log_odds)) for log_odds in odds]
    return tuple((math.log(ratio / bound), math.log((1 - ratio) / (1 - bound))) for ratio in ratios)


def _at_most(failed: int, started: int, ratio: float) -> float:
    """The probability that at most this many fail; the ratio is above `failed / started`."""
    total = term = probability(failed, started, ratio)
    # each term is smaller than the one before: of millions, some hundred are enough
    for count in range(failed, 0, -1):
        term *= count * (1 - ratio) / ((started - count + 1) * ratio)
        total += term
        if term <= total * _PRECISION:
            break
    return total
