# Problems of every task: one folder each, vouched for by its manifest.
rule data:
    """Problems of every task."""
    input:
        expand(f"{ROOT}/data/{{task}}/manifest.json", task=study.config.grid.tasks),


rule prepare_data:
    """Make or fetch the training and validation problems of a task."""
    output:
        f"{ROOT}/data/{{task}}/manifest.json",
    log:
        f"{LOGS}/data/{{task}}.log",
    benchmark:
        f"{BENCHMARKS}/data/{{task}}.tsv"
    priority: 1000
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        settings=lambda wildcards: study.data_params(wildcards.task),
    message:
        "Problems of {wildcards.task}"
    shell:
        'rolewise data {wildcards.task} --configfile "$ROLEWISE_CONFIG" > {log:q} 2>&1'
