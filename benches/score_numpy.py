"""Scores a batch with plain NumPy, as a yardstick: what `score_candidates` does, an array operation a step.

Usage: score_numpy.py FOLDER PASSES. The folder holds the arrays that `slotwise bench` writes, and `rows`, the scores
that it found. Prints {"seconds": the best pass, "equal": whether the scores are those}. Exit code 3: there is no NumPy.
"""

import json
import sys
import time
from pathlib import Path

try:
    import numpy as np
except ImportError:
    sys.exit(3)

# Bits of a packed state; see src/evaluate/abi.rs.
ANCHOR, SLACK, NOT_FULL, NOT_EMPTY, OVERFLOW, WAS_OUTSIDE = (np.uint32(1 << bit) for bit in (5, 11, 17, 23, 29, 30))
# Reasons; see src/evaluate/reason.rs.
GPU_BUSY, NO_CPU, NO_MEMORY = np.uint32(11), np.uint32(12), np.uint32(13)
FEASIBLE = np.uint32(0xFFFFFFFF)

BITS = np.dtype([("capacity", "u1"), ("unused", "u1"), ("free", "u2"), ("state", "u4")])
AMOUNTS = np.dtype([("cpu", "i4"), ("memory", "i4")])
TOUCH = np.dtype([("node", "u4"), ("need", "u4"), ("freed", "u2"), ("taken", "u2"), ("step", "u4")])
COLUMNS = ("reason", "delta_partial", "left", "entered", "outside", "opened", "delta_empty", "residual")


def load(folder):
    kinds = {"bits": BITS, "amounts": AMOUNTS, "touches": TOUCH, "offsets": "u4", "given": "u4", "needs": AMOUNTS}
    return {name: np.fromfile(folder / name, dtype=kind) for name, kind in kinds.items()}


def score(bits, amounts, touches, offsets, given, needs):
    """One row of eight words a candidate."""
    node, need = touches["node"], touches["need"]
    before = bits["state"][node]
    after = before + touches["step"]

    busy = touches["taken"] & ~(bits["free"][node] | touches["freed"]) != 0
    no_cpu = needs["cpu"][need] > amounts["cpu"][node]
    no_memory = needs["memory"][need] > amounts["memory"][node]
    obstacle = np.select([busy, no_cpu, no_memory], [GPU_BUSY, NO_CPU, NO_MEMORY], FEASIBLE)

    def partial(state):
        return (state & NOT_EMPTY != 0) & (state & NOT_FULL != 0)

    outside = before & WAS_OUTSIDE != 0
    outside_after = (after & OVERFLOW != 0) | ((after & ANCHOR != 0) & (after & SLACK == 0))
    empty, empty_after = before & NOT_EMPTY == 0, after & NOT_EMPTY == 0
    free_after = (after >> np.uint32(12) & np.uint32(63)).astype(np.int32) - 31
    of_touches = {
        "delta_partial": partial(after).astype(np.int32) - partial(before),
        "left": ~outside & outside_after,
        "entered": outside & ~outside_after,
        "outside": outside_after,
        "opened": empty & ~empty_after,
        "delta_empty": empty_after.astype(np.int32) - empty,
        "residual": free_after,
    }

    # A sum over no touch is no sum for `reduceat`: candidates without any stay zero.
    rows = np.zeros((len(given), len(COLUMNS)), dtype=np.int32)
    some = np.flatnonzero(offsets[1:] > offsets[:-1])
    starts = offsets[some].astype(np.intp)
    reason = given.copy()
    if len(some) > 0:
        for column, values in of_touches.items():
            rows[some, COLUMNS.index(column)] = np.add.reduceat(values, starts, dtype=np.int32)
        found = np.minimum.reduceat(obstacle, starts)
        found[found == FEASIBLE] = 0
        reason[some] = np.where(reason[some] != 0, reason[some], found)
    rows[reason != 0] = 0
    rows[:, 0] = reason
    return rows


def main():
    folder, passes = Path(sys.argv[1]), int(sys.argv[2])
    arrays = load(folder)
    best = float("inf")
    for _ in range(passes):
        start = time.perf_counter()
        rows = score(**arrays)
        best = min(best, time.perf_counter() - start)
    expected = np.fromfile(folder / "rows", dtype=np.int32).reshape(-1, len(COLUMNS))
    print(json.dumps({"seconds": best, "equal": bool(np.array_equal(rows, expected))}))


main()
