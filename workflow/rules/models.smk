# Base models: trained here from scratch (embedded) or fetched.
rule models:
    """Base model of every scale."""
    input:
        expand(f"{ROOT}/models/{{scale}}/manifest.json", scale=study.config.grid.scales),


rule make_model:
    """Train the embedded base model of a scale, or fetch a pretrained one."""
    input:
        data=model_inputs,
    output:
        f"{ROOT}/models/{{scale}}/manifest.json",
    log:
        f"{LOGS}/models/{{scale}}.log",
    benchmark:
        f"{BENCHMARKS}/models/{{scale}}.tsv"
    priority: 1000
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=8000,
        runtime=240,
    params:
        settings=lambda wildcards: study.model_params(wildcards.scale),
    message:
        "Base model {wildcards.scale}"
    shell:
        'rolewise model {wildcards.scale} --configfile "$ROLEWISE_CONFIG" > {log:q} 2>&1'
