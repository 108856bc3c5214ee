# What a paper says, compared with its own numbers and everything that was measured.


rule claims:
    input:
        request=CALL.claims_request,
        shown=CALL.claims_inputs,
        files=CALL.shown_files,
    output:
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
    shell:
        "fedbench claims {wildcards.paper:q} --write --request {input.request:q} > {log:q} 2>&1"


use rule own_table as own_claims with:
    input:
        csv=f"tables/{CALL.config.paper}/claims.csv",
        md=f"tables/{CALL.config.paper}/claims.md",
    output:
        csv="tables/claims.csv",
        md="tables/claims.md",
    log:
        "logs/claims/own.log",
