"""Which activations carry what a model predicts? Patching between two contexts, its gradient estimate, and ablation.

    python -m analysis.interventions --run RUN

`pairs`: clean and corrupted contexts. `metrics`: a number for each context from its prediction. `programs`: the passes,
in which sites are data. `tables`: a row for each site, with the restored share, and the change under ablation.
"""

from icl_lab.analysis.interventions.pairs import CORRUPTIONS, Pairs, pairs_from_files, pairs_of
from icl_lab.analysis.interventions.tables import ablation_table, patching_table

__all__ = ["CORRUPTIONS", "Pairs", "ablation_table", "pairs_from_files", "pairs_of", "patching_table"]
