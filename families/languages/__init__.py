"""In-context membership in regular languages: automata, pools of labelled strings, codes, and the family's parts."""
