# Looking instead of reading: everything on one page.


rule page:
    input:
        CALL.page_inputs,
    output:
        "report.html",
    log:
        "logs/report/page.log",
    conda:
        "../envs/fedbench.yaml"
    resources:
        options=CALL.options,
    params:
        scale=CALL.config.scale,
        paper=CALL.config.paper,
        besides=CALL.page_besides,
    shell:
        "fedbench report --scale {params.scale:q} --paper {params.paper:q} {resources.options} > {log:q} 2>&1"
