"""What Hoogland et al. 2024 publish of their regression transformer: 500 000 steps of 256 sequences, D = 4, K = 8."""

from __future__ import annotations

from collections.abc import Mapping

# squared error of each position at the end, of one seed
LOSSES_BY_POSITION = (4.12, 3.15, 2.31, 1.53, 1.07, 0.75, 0.57, 0.48)

# step -> the range of the LLC over five seeds, as far as it is published, at 16 of its steps
LLC: Mapping[int, tuple[float, float]] = {
    **{0: (-2.7, 12.6), 984: (18, 20), 2500: (35, 53), 5000: (109, 126), 10_000: (154, 157), 20_000: (167, 168)},
    **{40_000: (169, 171), 81_000: (165, 166), 101_000: (160, 160), 126_000: (156, 158), 172_000: (150, 155)},
    **{222_000: (140, 148), 268_000: (117, 135), 318_000: (113, 131), 399_000: (113, 130), 500_000: (116, 141)},
}
