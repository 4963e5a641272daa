"""Studies: each trains runs, measures claims on them, and writes its tables, figures and page into report/.

python -m studies.run reproduction --profile quick
"""

from icl_lab.lab import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
from icl_lab.src import namespace

namespace.check(__name__)
