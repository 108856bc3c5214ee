# The results of cells beside the published numbers.


rule table:
    input:
        request=CALL.table_request,
        shown=CALL.table_inputs,
        files=CALL.shown_files,
    output:
        tex="tables/{paper}/{table}.tex",
        csv=report(
            "tables/{paper}/{table}.csv",
            category="{paper}",
            labels={"shown": "{table}", "form": "numbers"},
        ),
        md="tables/{paper}/{table}.md",
        provenance="tables/{paper}/{table}.json",
        macros="tables/{paper}/{table}.macros.tex",
    log:
        "logs/table/{paper}/{table}.log",
    localrule: True
    shell:
        "fedbench table {wildcards.paper:q}/{wildcards.table:q} --request {input.request:q} > {log:q} 2>&1"


rule typeset:
    input:
        "tables/{paper}/{table}.tex",
    output:
        "tables/{paper}/{table}.pdf",
    log:
        "logs/typeset/{paper}/{table}.log",
    localrule: True
    shell:
        "fedbench typeset {input:q} > {log:q} 2>&1"


rule own_table:
    input:
        tex=f"tables/{CALL.config.paper}/{{table}}.tex",
        csv=f"tables/{CALL.config.paper}/{{table}}.csv",
        md=f"tables/{CALL.config.paper}/{{table}}.md",
        macros=f"tables/{CALL.config.paper}/{{table}}.macros.tex",
    output:
        tex="tables/{table}.tex",
        csv="tables/{table}.csv",
        md="tables/{table}.md",
        macros="tables/{table}.macros.tex",
    log:
        "logs/table/{table}.log",
    localrule: True
    shell:
        "cp {input:q} tables/ > {log:q} 2>&1"


use rule own_table as own_pdf with:
    input:
        f"tables/{CALL.config.paper}/{{table}}.pdf",
    output:
        "tables/{table}.pdf",
    log:
        "logs/typeset/{table}.log",
