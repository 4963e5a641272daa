"""All claims of the ledger, by paper, and what is trained for them."""

from report.claims import task_diversity, von_oswald

CLAIMS = (*von_oswald.CLAIMS, *task_diversity.CLAIMS)
RUNS = von_oswald.RUNS | task_diversity.RUNS
