"""A door to `analysis.measures.attention_summary`: captured attention maps in numbers."""

from analysis.measures.attention_summary import batch_mean, head_summary, summarise

__all__ = ["batch_mean", "head_summary", "summarise"]
