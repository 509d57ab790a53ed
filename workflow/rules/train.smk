# Training. The only output is a small manifest, written last; resumable state lives below
# `state/` and is no output, so that Snakemake never deletes it. Inputs are ancient: new dates on
# data or model never retrain, a changed content is refused by the trainer itself.
rule train:
    """Every training of the grid."""
    input:
        study.paths(study.trained, "manifest.json"),


rule train_cell:
    """Train one cell; killed, it continues where it was."""
    input:
        model=lambda wildcards: ancient(
            f"{ROOT}/models/{known_cell(wildcards).scale}/manifest.json"
        ),
        data=lambda wildcards: ancient(
            f"{ROOT}/data/{known_cell(wildcards).task}/manifest.json"
        ),
    output:
        f"{CELL}/manifest.json",
    log:
        f"{LOGS}/train/{{cell}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/train/{{cell}}-seed{{seed}}.tsv"
    wildcard_constraints:
        cell=TRAINED,
    priority: lambda wildcards: 100 + study.priority(wildcards.cell)
    retries: 1
    conda:
        ENVIRONMENT
    threads: study.config.resources.threads * study.config.resources.processes
    resources:
        gpu=study.config.resources.gpu,
        mem_mb=lambda wildcards: 64000 if study.config.resources.gpu else 4000,
        runtime=2880,
    params:
        settings=lambda wildcards: study.train_params(wildcards.cell),
    message:
        "Training {wildcards.cell}, seed {wildcards.seed}"
    shell:
        "python -m rolewise.runs.gpu_lease {resources.gpu} --"
        ' rolewise train {wildcards.cell} --seed {wildcards.seed} --configfile "$ROLEWISE_CONFIG"'
        " > {log:q} 2>&1"
