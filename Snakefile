# fedbench: from the configuration to the tables and figures of a paper.
#   snakemake                           everything of the paper named in config/config.yaml
#   snakemake tables/table1.tex         one table (or tables/<paper>/table1.tex, figures/<paper>/figure1.pdf)
#   snakemake report.html               all of it on one page; reports/<paper>.pdf: as one document
#   snakemake --config scale=reduced    any key of config/config.yaml, for this call


from snakemake.utils import min_version

min_version("9.19")


# configuration
configfile: "config/config.yaml"


# rules
include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/report.smk"


wildcard_constraints:
    paper=r"[A-Za-z0-9_][A-Za-z0-9._+-]*",
    table=r"(table|leaderboard)[A-Za-z0-9_+-]*",
    figure=r"figure[A-Za-z0-9_+-]+",


onstart:
    begin(workflow.dag)


onsuccess:
    tell_the_end()


onerror:
    explain_failures(workflow.dag)
    tell_the_end()


rule all:
    default_target: True
    input:
        checked(INPUTS.everything, FORMS),


check_targets()
