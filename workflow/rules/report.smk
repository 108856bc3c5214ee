# Looking instead of reading: everything on one page.


rule page:
    input:
        request=CALL.page_request,
        shown=CALL.page_inputs,
        files=CALL.shown_files,
    output:
        "report.html",
    log:
        "logs/report/page.log",
    localrule: True
    shell:
        "fedbench report --request {input.request:q} > {log:q} 2>&1"
