"""Reproduces "Transformers Learn In-Context by Gradient Descent" as claims of the ledger, with its figures.

python -m report.reproduce --profile quick
"""

from report import command

if __name__ == "__main__":
    command.run("report.reproduce", "runs/reproduce")
