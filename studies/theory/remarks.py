"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "preconditioned_reciprocal_loss": "Seven of eight runs are at the closed form, 1.000 to 1.001; one is stuck at 1.99, on a plateau where the layer predicts along one direction of the inputs. The mean of the two is no run.",
    "preconditioned_noisy_loss": "Six of eight runs are at the closed form, 1.000 to 1.001; two are stuck at 1.75, where the layer predicts along one direction of the inputs.",
    "preconditioned_square_loss": "Five of eight runs are at the closed form, 1.000 to 1.001; three are stuck at 1.81 to 1.87, where the layer predicts along one direction of the inputs.",
    "preconditioned_square_matrix": "The five runs at the closed form's loss are at .026 to .035; the three that are stuck at .98 to 1.00.",
    "preconditioned_condition_100_matrix": "All eight runs have the closed form's loss to .6 %, but the loss hardly depends on directions of variance .01 to .05: four runs are at .02 to .03, four at .11 to .53.",
    "preconditioned_5_pairs": "The two runs that are stuck in training (preconditioned_noisy_loss) are at 1.16 and 1.19, the others at .96 to 1.03.",
    "preconditioned_200_pairs": "The two runs that are stuck in training (preconditioned_noisy_loss) are at 2.46 and 2.52, the others at .98 to 1.02.",
    "preconditioned_1000_pairs": "The two runs that are stuck in training (preconditioned_noisy_loss) are at 2.63 and 2.66, the others at .97 to 1.02.",
    "preconditioned_covariance_shift": "The run that is stuck in training (preconditioned_reciprocal_loss) is at .85, the others at 14.1 to 15.1.",
    "preconditioned_task_shift": "The run that is stuck in training (preconditioned_reciprocal_loss) is at 1.29, the others at .98 to 1.01.",
    "preconditioned_query_shift": "The run that is stuck in training (preconditioned_reciprocal_loss) is at 1.71, the others at .98 to 1.02.",
    "preconditioned_rotated_depth": "All eight runs do better in two layers, .28 to .53 of one layer's loss; the range came from one pilot, .41.",
}
# fmt: on
