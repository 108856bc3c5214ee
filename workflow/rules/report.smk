# Looking instead of reading: everything on one page, and a paper's tables and figures as one document.


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


rule document:
    input:
        CALL.document_inputs,
    output:
        "reports/{paper}.pdf",
    log:
        "logs/report/{paper}.log",
    conda:
        "../envs/fedbench.yaml"
    resources:
        options=CALL.options,
    params:
        scale=CALL.config.scale,
        besides=CALL.shown_besides,
    shell:
        "fedbench document {wildcards.paper:q} --scale {params.scale:q} {resources.options} > {log:q} 2>&1"
