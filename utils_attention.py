"""Statistics of captured attention maps, re-exported from `analysis.attention_maps`."""

from icl_lab.analysis.attention_maps import batch_mean, head_summary, summarise

__all__ = ["batch_mean", "head_summary", "summarise"]
