# Curves over the course of training.


rule figure:
    input:
        request=CALL.figure_request,
        shown=CALL.figure_inputs,
        files=CALL.shown_files,
    output:
        pdf="figures/{paper}/{figure}.pdf",
        svg=report(
            "figures/{paper}/{figure}.svg",
            category="{paper}",
            labels={"shown": "{figure}", "form": "picture"},
        ),
        png="figures/{paper}/{figure}.png",
        csv="figures/{paper}/{figure}.csv",
        provenance="figures/{paper}/{figure}.json",
    log:
        "logs/figure/{paper}/{figure}.log",
    localrule: True
    shell:
        "fedbench figure {wildcards.paper:q}/{wildcards.figure:q} --request {input.request:q} > {log:q} 2>&1"


rule own_figure:
    input:
        pdf=f"figures/{CALL.config.paper}/{{figure}}.pdf",
        svg=f"figures/{CALL.config.paper}/{{figure}}.svg",
        png=f"figures/{CALL.config.paper}/{{figure}}.png",
    output:
        pdf="figures/{figure}.pdf",
        svg="figures/{figure}.svg",
        png="figures/{figure}.png",
    log:
        "logs/figure/{figure}.log",
    localrule: True
    shell:
        "cp {input:q} figures/ > {log:q} 2>&1"
