"""Studies task diversity and the transient ridge: claims of the ledger, figures and the page report/task_diversity.md.

python -m report.diversity --profile quick
"""

from report import command

if __name__ == "__main__":
    command.run("report.diversity", "runs/diversity")
