# Raw files to prepared arrays, once per dataset; then who holds which sample, once per data rule and seed.


rule prepare:
    output:
        arrays=f"{CONFIG.data_dir}/prepared/{{dataset}}.npz",
        summary=f"{CONFIG.data_dir}/prepared/{{dataset}}.json",
    log:
        "logs/prepare/{dataset}.log",
    conda:
        "../envs/fedbench.yaml"
    shell:
        "python data_prep/prepare.py {wildcards.dataset} > {log} 2>&1"


rule partition:
    input:
        f"{CONFIG.data_dir}/prepared/{{dataset}}.npz",
    output:
        indices=f"{CONFIG.data_dir}/partitions/{{dataset}}/{{key}}.npz",
        summary=f"{CONFIG.data_dir}/partitions/{{dataset}}/{{key}}.json",
    log:
        "logs/partition/{dataset}/{key}.log",
    conda:
        "../envs/fedbench.yaml"
    shell:
        "python data_prep/partition.py {wildcards.dataset} {wildcards.key} > {log} 2>&1"
