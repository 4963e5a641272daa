"""An in-context learning laboratory: a transformer and the algorithms it might be running, on the same context.

The rooms of the laboratory lie below this package: `icl_lab.src`, `icl_lab.baselines`, `icl_lab.store`, ...
"""
