# Frozen mode on a fresh clone: redraw the shipped reference results, into a folder of their own.
rule unpack_reference:
    """Copy the shipped results up to the cut line, checking their hashes."""
    input:
        f"{REFERENCE}/manifest.json",
    output:
        f"{ROOT}/tables/cells.csv",
    log:
        f"{LOGS}/reference.log",
    benchmark:
        f"{BENCHMARKS}/reference.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    message:
        "Reference results from {input}"
    shell:
        'rolewise reference unpack --configfile "$ROLEWISE_CONFIG" > {log:q} 2>&1'
