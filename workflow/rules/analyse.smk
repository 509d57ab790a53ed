# From runs to tidy files: a summary per cell, then the cut line between expensive and cheap.
SUMMARY = ["trajectories.parquet", "summary.json"]
DIAGNOSTICS = ["metrics.parquet", "gradients.parquet", "timings.parquet"]


rule summarise_cell:
    """Summarise a trained cell: diagnostics, chosen checkpoints, trajectories."""
    input:
        f"{CELL}/manifest.json",
        f"{CELL}/evaluations.parquet",
        f"{CELL}/accuracy.csv",
        base_files,
    output:
        [f"{CELL}/{name}" for name in DIAGNOSTICS + SUMMARY],
    log:
        f"{LOGS}/summarise/{{cell}}-seed{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/summarise/{{cell}}-seed{{seed}}.tsv"
    wildcard_constraints:
        cell=TRAINED,
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        settings=study.summarise_params(),
    message:
        "Summary of {wildcards.cell}, seed {wildcards.seed}"
    shell:
        'rolewise summarise {wildcards.cell} --seed {wildcards.seed} --configfile "$ROLEWISE_CONFIG"'
        " > {log:q} 2>&1"


use rule summarise_cell as summarise_base with:
    input:
        f"{CELL}/evaluations.parquet",
        f"{CELL}/accuracy.csv",
    output:
        [f"{CELL}/{name}" for name in SUMMARY],
    wildcard_constraints:
        cell=UNTRAINED,


rule collect_cells:
    """Gather every cell into the tidy table that all tables and figures start from."""
    input:
        study.paths(study.trained + study.base, "summary.json"),
        transfer_files("summary.json"),
        study.paths(study.swaps, "swaps.parquet"),
    output:
        f"{ROOT}/tables/cells.csv",
    log:
        f"{LOGS}/collect.log",
    benchmark:
        f"{BENCHMARKS}/collect.tsv"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        settings=study.paper_params(),
    message:
        "Collecting cells"
    shell:
        # Its processes share the cores; threads of each would only get into the others' way.
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1;"
        ' rolewise collect --processes {threads} --configfile "$ROLEWISE_CONFIG" > {log:q} 2>&1'
