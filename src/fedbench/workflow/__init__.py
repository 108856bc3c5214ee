"""What the Snakemake workflow asks the library: which files a rule needs, and what to say when jobs fail.

Nothing here imports Snakemake; ``workflow/rules/common.smk`` ties it to the workflow's own objects.
"""
