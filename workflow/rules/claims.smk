# What a paper says, compared with its own numbers and everything that was measured.


rule claims:
    input:
        request=CALL.claims_request,
        shown=CALL.claims_inputs,
        configuration=CALL.configuration,
        published=CALL.published,
        shipped=CALL.shipped,
    output:
        tex="tables/{paper}/claims.tex",
        csv=report(
            "tables/{paper}/claims.csv",
            category="{paper}",
            labels={"shown": "claims", "form": "numbers"},
        ),
        md="tables/{paper}/claims.md",
        provenance="tables/{paper}/claims.json",
    log:
        "logs/claims/{paper}.log",
    localrule: True
    conda:
        "../envs/fedbench.yaml"
    shell:
        "fedbench claims {wildcards.paper:q} --write --request {input.request:q} > {log:q} 2>&1"


use rule typeset as typeset_claims with:
    input:
        "tables/{paper}/claims.tex",
    output:
        "tables/{paper}/claims.pdf",
    log:
        "logs/typeset/{paper}/claims.log",


use rule own_table as own_claims with:
    input:
        tex=f"tables/{CALL.config.paper}/claims.tex",
        csv=f"tables/{CALL.config.paper}/claims.csv",
        md=f"tables/{CALL.config.paper}/claims.md",
    output:
        tex="tables/claims.tex",
        csv="tables/claims.csv",
        md="tables/claims.md",
    log:
        "logs/claims/own.log",


use rule own_pdf as own_claims_pdf with:
    input:
        f"tables/{CALL.config.paper}/claims.pdf",
    output:
        "tables/claims.pdf",
    log:
        "logs/typeset/claims.log",
