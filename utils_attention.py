"""Statistics of captured attention maps, re-exported from `analysis.measures.attention_summary`."""

from icl_lab.analysis.measures.attention_summary import batch_mean, head_summary, summarise

__all__ = ["batch_mean", "head_summary", "summarise"]
