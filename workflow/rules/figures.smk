# Curves over the course of training.


rule figure:
    input:
        spec="config/papers/{paper}.yaml",
        cells=figure_cells,
    output:
        pdf="figures/{paper}/{figure}.pdf",
        svg="figures/{paper}/{figure}.svg",
        png="figures/{paper}/{figure}.png",
    log:
        "logs/figure/{paper}/{figure}.log",
    conda:
        "../envs/fedbench.yaml"
    shell:
        "fedbench figure {wildcards.paper}/{wildcards.figure} > {log:q} 2>&1"


rule paper_figure:
    input:
        pdf=f"figures/{CONFIG.paper}/{{figure}}.pdf",
        svg=f"figures/{CONFIG.paper}/{{figure}}.svg",
        png=f"figures/{CONFIG.paper}/{{figure}}.png",
    output:
        pdf="figures/{figure}.pdf",
        svg="figures/{figure}.svg",
        png="figures/{figure}.png",
    log:
        "logs/figure/{figure}.log",
    localrule: True
    conda:
        "../envs/fedbench.yaml"
    shell:
        "cp {input} figures/ > {log:q} 2>&1"
