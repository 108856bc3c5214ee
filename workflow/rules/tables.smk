# The results of cells beside the published numbers.


rule table:
    input:
        spec="config/papers/{paper}.yaml",
        cells=table_cells,
    output:
        tex="tables/{paper}/{table}.tex",
        csv="tables/{paper}/{table}.csv",
        md="tables/{paper}/{table}.md",
    log:
        "logs/table/{paper}/{table}.log",
    conda:
        "../envs/fedbench.yaml"
    shell:
        "fedbench table {wildcards.paper}/{wildcards.table} > {log:q} 2>&1"


rule paper_table:
    input:
        tex=f"tables/{CONFIG.paper}/{{table}}.tex",
        csv=f"tables/{CONFIG.paper}/{{table}}.csv",
        md=f"tables/{CONFIG.paper}/{{table}}.md",
    output:
        tex="tables/{table}.tex",
        csv="tables/{table}.csv",
        md="tables/{table}.md",
    log:
        "logs/table/{table}.log",
    localrule: True
    conda:
        "../envs/fedbench.yaml"
    shell:
        "cp {input} tables/ > {log:q} 2>&1"
