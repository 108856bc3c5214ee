# Raw files to prepared arrays, once per dataset; then who holds which sample, once per data rule and seed.


rule prepare:
    input:
        CALL.prepare_request,  # where what was prepared is not what its description and raw files give
    output:
        summary=f"{CALL.config.data_dir}/prepared/{{dataset}}.json",
    log:
        "logs/prepare/{dataset}.log",
    localrule: True
    threads: CALL.decoding_cores
    params:
        data_dir=subpath(output.summary, ancestor=2),
        options=CALL.mirror,
    shell:
        "python data_prep/prepare.py {wildcards.dataset:q} --data-dir {params.data_dir:q}"
        " {params.options} --cores {threads} > {log:q} 2>&1"


rule partition:
    input:
        data=CALL.partition_data,
        request=CALL.partition_request,
    output:
        arrays=f"{CALL.config.data_dir}/partitions/{{dataset}}/{{key}}.npz",
        summary=f"{CALL.config.data_dir}/partitions/{{dataset}}/{{key}}.json",
    log:
        "logs/partition/{dataset}/{key}.log",
    localrule: True
    params:
        data_dir=subpath(output.arrays, ancestor=3),
        spec=lambda wildcards: CALL.partitioned(wildcards).data.model_dump_json(),
        seed=lambda wildcards: CALL.partitioned(wildcards).seed,
    shell:
        "python data_prep/partition.py --spec {params.spec:q} --seed {params.seed:q}"
        " --data-dir {params.data_dir:q} > {log:q} 2>&1"
