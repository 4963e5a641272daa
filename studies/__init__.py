"""Studies: each trains runs, measures claims on them, and writes its tables, figures and page into report/.

python -m studies.run reproduction --profile quick
"""
