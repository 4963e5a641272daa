"""How a model develops: curves over training, their milestones and nulls, trajectories, structure, behaviour."""
