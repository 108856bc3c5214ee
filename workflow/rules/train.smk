# One job per cell, all its seeds inside: one after another, or where there are more cores than jobs several at a time.
# Finished seeds are found in the run store and not trained again.


rule train:
    input:
        data=CALL.cell_data,
        request=CALL.cell_request,  # where the file of the cell has other runs than those that are asked for
    output:
        "results/cells/{scale}/{paper}/{dataset}/{setting}/{method}.json",
    log:
        "logs/train/{scale}/{paper}/{dataset}/{setting}/{method}.log",
    threads: CALL.training_cores
    resources:
        gpu=CALL.gpu,
    params:
        cell=lambda wildcards: CALL.cell(wildcards).name,
        options=CALL.options,  # nothing of the threads: they would be settled before it is known which cells wait
    shell:
        # status 3: a seed diverged, which is a result; above 128: stopped (by SIGINT or SIGTERM), or killed, which the log would not tell
        "fedbench run {params.cell:q} --scale {wildcards.scale:q} {params.options} --cores {threads} > {log:q} 2>&1 || {{ code=$?;"
        " [ $code -le 128 ] || case $code in 130|143) echo 'stopped; the same command goes on' ;;"
        ' *) echo "error: killed by signal $((code - 128)) (9: often, memory ran out)" ;; esac >> {log:q};'
        " [ $code -eq 3 ] || exit $code; }}"
