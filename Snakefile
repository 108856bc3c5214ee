# The entry of fedbench's workflow, whose rules lie in workflow/.
include: "workflow/Snakefile"


rule everything:
    input:
        rules.all.input,
