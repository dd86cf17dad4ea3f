"""The theorems of docs/theory.md, measured: slopes of regret, decompositions, the conjecture."""

from __future__ import annotations

from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import page, table
from benchmarks.slopes import N_RESAMPLED, N_RUNS, SEED, least_horizon, measure, rows
from shoal.decompositions import decompose, is_decomposition
from shoal.decompositions.beta.search import hardest_graph
from shoal.errors import DemandError

SEARCH_SECONDS = 20.0


def main() -> None:
    lines = measure()
    page(
        "theory",
        "The theorems, measured",
        "python -m benchmarks theory",
        "What [Theory](../theory.md) proves, beside what is measured. A slope is fitted to the "
        f"logarithms of mean regret; its 95 % interval is from {N_RESAMPLED:,} resamples of the "
        f"{N_RUNS} runs of each point. A theorem bounds the worst instance, so at each point the "
        "worst of some gaps counts.",
        "## Regret against C",
        _against_group_size(lines["C"]),
        "## Regret against K, clusters of C+1",
        _against_arms(lines["K"]),
        "## Regret against T, no clusters",
        _against_horizon(lines["T"]),
        "## Home and away",
        _home_away(),
        "## The conjecture",
        _conjecture(),
    )


def _against_group_size(lines: list[dict[str, Any]]) -> str:
    return (
        "Two arms, each the favourite of half the users, normal rewards of variance 1. Pooled "
        "samples decide by the theorem's form, `estimates=batch`; gamma is log(NKT), and 4C+1 "
        "times that for the paper's samples: a quarter and a twelfth of what the proofs ask for "
        "with normal rewards. At the gap √(C·K/T) of the lower bound no policy, not even random "
        "play, can lose more than N·√(C·K·T)·(1 − 1/K), so a slope of 1 can't be seen there: the "
        "gaps tried are 2 to 64 times √(C·K/T) for pooled samples (11 and 16 times, the worst by "
        "law, where they are played) and 8 to 256 times C·√(K/T) for the paper's, in steps of √2, "
        "at most 1. "
        "*By law*: no rounds are played; a batch's estimates are drawn from their normal "
        "distribution given the expected information of its groups, all else is the policy's own "
        "code (`benchmarks.long_horizon`). "
        "*Expected* is the slope of the theorem's own expression with its constants: "
        "√(L/b(N/2)) for pooled samples, √(L·(2C+2)(4C+1)) for the paper's, L = log(NKT). The "
        f"theorem asks for T ≥ {least_horizon(16, 72):.1e} with C = 16 and 72 users, and for "
        f"T ≥ {least_horizon(32, 256):.1e} with C = 32 and 256; points are C = 2, 4, 8, 16, and "
        f"8, 16, 32 in the last line of either policy.\n\n{rows(lines)}"
    )


def _against_arms(lines: list[dict[str, Any]]) -> str:
    return (
        "C = 2, K·(C+1) users, K = 4, 8, 16: on every arm one user with reward 1 there and 0 "
        "elsewhere, and 2 whose arms differ by the gap. The default α of `blocks` is K and that of "
        "`home-away` 2 − 1/K: Theorem 1 says Õ(C·√(α·K·T)). Gaps are 8 to 512 times C·√(K/T) in "
        "steps of √2, at most 1; 8 runs. "
        f"*Expected* is the slope of √(α·K·L).\n\n{rows(lines)}"
    )


def _against_horizon(lines: list[dict[str, Any]]) -> str:
    return (
        "C = 4: two undecided users, all others fans of an arm that is nobody else's. Bernoulli "
        "rewards, both policies with their default constant, 1; T = 10⁴, 10⁵, 10⁶; gaps are 1/2 to "
        "4 times (C·K/T)^(1/3). Pooled explore-then-commit needs T ≥ 16·K·log(NKT)/(b·σ), about "
        "10,000 here, so that the theorem applies from the second point on. Most of the regret is "
        "exploration of a fixed length, so the interval is narrow by construction.\n\n"
        f"{rows(lines)}"
    )


def random_graph(rng: np.random.Generator) -> tuple[NDArray[np.bool_], int]:
    """Return a graph with U = C+1 exactly, and its crowd: some users decided, others not."""
    n_arms, crowd = int(rng.integers(2, 41)), int(rng.integers(2, 7))
    home = np.repeat(np.arange(n_arms), crowd)
    active = rng.random((len(home), n_arms)) < rng.choice([0.05, 0.2, 0.5, 1.0])
    active[rng.random(len(home)) < rng.choice([0.0, 0.3, 0.7, 0.95])] = False
    active[np.arange(len(home)), home] = True
    return active, crowd


def _home_away() -> str:
    n_graphs = 200
    excess = []
    for number in range(n_graphs):
        rng = np.random.default_rng([SEED, 4, number])
        active, crowd = random_graph(rng)
        demand, n_arms = int(rng.integers(1000, 10_000)), active.shape[1]
        decomposition = decompose(active, demand, min_crowd=crowd, method="home-away")
        certificate = is_decomposition(active, demand, decomposition, min_crowd=crowd)
        assert certificate, certificate.reason
        excess.append(certificate.ratio - (2 - 1 / n_arms))
    rows: list[list[object]] = []
    for n_arms, crowd in ((8, 4), (16, 3), (32, 3)):
        decided = np.eye(n_arms, dtype=bool)
        thin = np.vstack([decided[:1], np.ones((crowd - 1, n_arms), bool)])
        active = np.vstack([thin, np.repeat(decided[1:], crowd, axis=0)])
        ratios: list[object] = []
        for method in ("home-away", "optimal", "euler", "blocks", "greedy"):
            try:
                result = decompose(active, 2000, min_crowd=crowd, method=method)
            except DemandError:
                ratios.append("refused")
                continue
            certificate = is_decomposition(active, 2000, result, min_crowd=crowd)
            assert certificate, certificate.reason
            ratios.append(f"{certificate.ratio:.3f}")
        rows.append([n_arms, crowd - 1, f"{2 - 1 / n_arms:.3f}", *ratios])
    columns = ["K", "C", "2 − 1/K", "home-away", "optimal", "euler", "blocks", "greedy"]
    return (
        f"{n_graphs} random graphs with U = C+1 exactly, 2 to 40 arms, demands of 1,000 to "
        f"10,000: all certificates valid; R/D exceeds 2 − 1/K by {max(excess):.4f} at most, and "
        f"lies below it in {sum(e < 0 for e in excess)} of them. The tight example of the "
        f"theorem, demand 2,000, R/D by method:\n\n{table(columns, rows)}\n\n{_time()}"
    )


def _time() -> str:
    n_users, n_arms, crowd, demand = 100_000, 20, 5, 256
    rng = np.random.default_rng([SEED, 5])
    rows: list[list[object]] = []
    dense = rng.random((n_users, n_arms)) < 0.5
    dense[np.arange(n_users), np.arange(n_users) % n_arms] = True
    # All but U users of each arm want one arm alone; arms 0 to 9 have one decided user each.
    hard = np.zeros((n_users, n_arms), bool)
    hard[np.arange(n_users), 10 + np.arange(n_users) % 10] = True
    for arm in range(10):
        hard[5 * arm : 5 * arm + 5] = True
        hard[5 * arm] = np.arange(n_arms) == arm
    for title, active in (("random active sets", dense), ("ten thin arms", hard)):
        for method in ("euler", "home-away"):
            decompose(active, demand, min_crowd=crowd, method=method)
            start = process_time()
            result = decompose(active, demand, min_crowd=crowd, method=method)
            seconds = process_time() - start
            rows.append([title, method, result.total / demand, len(result.repeats), seconds])
    columns = ["graph", "method", "R/D", "different assignments", "CPU seconds"]
    return (
        f"{n_users:,} users, {n_arms} arms, crowds of {crowd}, demand {demand}, the second of two "
        "runs, processor time on one core. Where all arms can be open at once, `home-away` is "
        "`euler`; else it also computes `euler` and returns the shorter:\n\n"
        f"{table(columns, rows)}"
    )


def _conjecture() -> str:
    rows: list[list[object]] = []
    for n_arms, size, cluster in (
        (2, 3, 5), (3, 2, 4), (3, 2, 5), (3, 3, 5), (3, 3, 6), (4, 2, 4), (4, 3, 5), (5, 2, 5),
    ):  # fmt: skip
        rng = np.random.default_rng([SEED, 6])
        hardest = hardest_graph(n_arms, size, cluster, seconds=SEARCH_SECONDS, rng=rng)
        conjectured = 1 / (
            max(Fraction(size, cluster - 1), Fraction(1, n_arms)) + 1 - Fraction(1, n_arms)
        )
        least = hardest.proof.lower
        verdict = "equal" if least == conjectured else "above" if least > conjectured else "BELOW"
        shown = (least, conjectured, hardest.proved, hardest.guarantee, verdict)
        rows.append([n_arms, size, cluster, *map(str, shown)])
    columns = [
        "K",
        "C",
        "U",
        "least beta found",
        "conjectured",
        "proved at least",
        "paper's 1/alpha",
        "found against conjectured",
    ]
    return (
        f"The smallest β that {SEARCH_SECONDS:g} s of search find, a proven fraction for the "
        "graph found, beside the conjecture and the theorem. The search proves nothing about "
        "graphs that it did not see; where it ends above the conjectured value, it did not get as "
        f"far as the tight example, which has that value.\n\n{table(columns, rows)}"
    )


if __name__ == "__main__":
    main()
