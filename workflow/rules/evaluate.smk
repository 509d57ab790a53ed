# Evaluation of checkpoints, of the untrained workflows, and of transferred generators.
rule base:
    """Every untrained workflow, evaluated."""
    input:
        study.paths(study.base, "evaluations.parquet", "accuracy.csv"),


rule evaluate:
    """Every checkpoint of every cell, evaluated, with the transfers."""
    input:
        study.paths(study.trained + study.base, "evaluations.parquet", "accuracy.csv"),
        transfer_files("evaluations.parquet"),
        study.paths(study.swaps, "swaps.parquet"),


rule evaluate_cell:
    """Evaluate every checkpoint of a trained cell."""
    input:
        manifest=f"{CELL}/manifest.json",
    output:
        evaluations=f"{CELL}/evaluations.parquet",
        accuracy=f"{CELL}/accuracy.csv",
    log:
        f"{LOGS}/evaluate/{{cell}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate/{{cell}}-seed{{seed}}.tsv"
    wildcard_constraints:
        cell=TRAINED,
    priority: lambda wildcards: study.priority(wildcards.cell)
    retries: 1
    conda:
        ENVIRONMENT
    threads: study.config.resources.threads
    resources:
        gpu=study.config.resources.gpu,
        mem_mb=lambda wildcards: 64000 if study.config.resources.gpu else 4000,
        runtime=720,
    params:
        settings=lambda wildcards: study.evaluate_params(known_cell(wildcards).name),
    message:
        "Evaluating {wildcards.cell}, seed {wildcards.seed}"
    shell:
        "python -m rolewise.runs.gpu_lease {resources.gpu} --"
        ' rolewise evaluate {wildcards.cell} --seed {wildcards.seed} --configfile "$ROLEWISE_CONFIG"'
        " > {log:q} 2>&1"


use rule evaluate_cell as evaluate_base with:
    input:
        model=lambda wildcards: ancient(
            f"{ROOT}/models/{known_cell(wildcards).scale}/manifest.json"
        ),
        data=lambda wildcards: ancient(
            f"{ROOT}/data/{known_cell(wildcards).task}/manifest.json"
        ),
    wildcard_constraints:
        cell=UNTRAINED,
    priority: 50


rule transfer_generator:
    """Evaluate the SA-RL adapter on the generator (worker) role of an untrained workflow."""
    input:
        single_agent=single_agent_files,
    output:
        evaluations=f"{TRANSFER}/evaluations.parquet",
        summary=f"{TRANSFER}/summary.json",
    log:
        f"{LOGS}/transfer/{{wf}}-{{scale}}-{{task}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/transfer/{{wf}}-{{scale}}-{{task}}-seed{{seed}}.tsv"
    retries: 1
    conda:
        ENVIRONMENT
    threads: study.config.resources.threads
    resources:
        gpu=study.config.resources.gpu,
        mem_mb=lambda wildcards: 64000 if study.config.resources.gpu else 4000,
        runtime=240,
    params:
        settings=lambda w: study.transfer_params(w.wf, w.scale, w.task),
    message:
        "Transfer of SA-RL-{wildcards.scale}-{wildcards.task} into {wildcards.wf}, seed {wildcards.seed}"
    shell:
        "python -m rolewise.runs.gpu_lease {resources.gpu} --"
        " rolewise transfer {wildcards.wf} {wildcards.scale} {wildcards.task}"
        ' --seed {wildcards.seed} --configfile "$ROLEWISE_CONFIG" > {log:q} 2>&1'


rule swap_roles:
    """Evaluate trained roles among base partners, and the reverse, at the best checkpoint."""
    input:
        manifest=f"{CELL}/manifest.json",
        accuracy=f"{CELL}/accuracy.csv",
    output:
        f"{CELL}/swaps.parquet",
    log:
        f"{LOGS}/swap/{{cell}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/swap/{{cell}}-seed{{seed}}.tsv"
    wildcard_constraints:
        cell=TRAINED,
    retries: 1
    conda:
        ENVIRONMENT
    threads: study.config.resources.threads
    resources:
        gpu=study.config.resources.gpu,
        mem_mb=lambda wildcards: 64000 if study.config.resources.gpu else 4000,
        runtime=720,
    params:
        settings=lambda wildcards: study.evaluate_params(known_cell(wildcards).name),
    message:
        "Swapping roles of {wildcards.cell}, seed {wildcards.seed}"
    shell:
        "python -m rolewise.runs.gpu_lease {resources.gpu} --"
        ' rolewise swap {wildcards.cell} --seed {wildcards.seed} --configfile "$ROLEWISE_CONFIG"'
        " > {log:q} 2>&1"
