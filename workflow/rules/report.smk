# Looking instead of reading: everything on one page, and a paper's tables and figures as one document.


rule page:
    input:
        page_inputs,
    output:
        "report.html",
    log:
        "logs/report/page.log",
    conda:
        "../envs/fedbench.yaml"
    resources:
        options=OPTIONS,
    params:
        scale=CONFIG.scale,
        paper=CONFIG.paper,
        besides=page_besides,
    shell:
        "fedbench report --scale {params.scale:q} --paper {params.paper:q} {resources.options} > {log:q} 2>&1"


rule document:
    input:
        document_inputs,
    output:
        "reports/{paper}.pdf",
    log:
        "logs/report/{paper}.log",
    conda:
        "../envs/fedbench.yaml"
    resources:
        options=OPTIONS,
    params:
        scale=CONFIG.scale,
        besides=shown_besides,
    shell:
        "fedbench document {wildcards.paper:q} --scale {params.scale:q} {resources.options} > {log:q} 2>&1"
