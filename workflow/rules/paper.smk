# Everything after the cut line: seconds, no training. These rules do depend on their source files.
PAPER = "src/rolewise/paper"
SHARED_CODE = [f"{PAPER}/rolewise.mplstyle"] + sorted(
    str(path)
    for folder in (PAPER, "src/rolewise/analysis")
    for path in Path(folder).glob("*.py")
    if not re.match(r"(figure|table)_\d", path.name)
)
REPORT_CODE = sorted(
    str(path)
    for path in Path("src/rolewise/report").rglob("*.*")
    if path.suffix in (".py", ".j2", ".css", ".js")
)
# A study without interventions of its own shows those of the mechanism preset, if they are shipped.
INTERVENTIONS = [
    str(path)
    for path in Path("results/reference-mechanism").glob("tables/*")
    if not study.config.grid.variants
]
PICTURES = study.config.paper.figure_format
TABLE_FILES = expand(
    f"{ROOT}/tables/table_{{n}}.{{kind}}", n=TABLES, kind=["csv", "md", "tex"]
)
FIGURE_FILES = expand(
    f"{ROOT}/figures/figure_{{n}}.{{kind}}", n=FIGURES, kind=[*PICTURES, "csv"]
)
CLAIM_FILES = expand(f"{ROOT}/claims/claims.{{kind}}", kind=["json", "md"])


rule tables:
    """Tables 1 to 10."""
    input:
        TABLE_FILES,


rule figures:
    """Figures 1 to 8."""
    input:
        FIGURE_FILES,


rule claims:
    """The claims ledger: what the results support, contradict or cannot decide."""
    input:
        CLAIM_FILES,


rule report:
    """The static report with its trajectory browser."""
    input:
        f"{ROOT}/report/index.html",


# One rule each, so that `snakemake --cores 1 figure_3` works and every caption is its own.
for n in TABLES:

    rule:
        name:
            f"table_{n}"
        input:
            cells=f"{ROOT}/tables/cells.csv",
            code=[f"{PAPER}/table_{n}.py", *SHARED_CODE],
            interventions=INTERVENTIONS if n == 9 else [],
        output:
            report(
                f"{ROOT}/tables/table_{n}.csv",
                caption=f"../report/table_{n}.rst",
                category="Tables",
                labels={"table": str(n)},
            ),
            f"{ROOT}/tables/table_{n}.md",
            f"{ROOT}/tables/table_{n}.tex",
        log:
            f"{LOGS}/tables/table_{n}.log",
        benchmark:
            f"{BENCHMARKS}/tables/table_{n}.tsv"
        conda:
            ENVIRONMENT
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            n=n,
            settings=study.paper_params(),
        message:
            "Table {params.n}"
        shell:
            'rolewise table {params.n} --configfile "$ROLEWISE_CONFIG" > {log:q} 2>&1'


for n in FIGURES:

    rule:
        name:
            f"figure_{n}"
        input:
            cells=f"{ROOT}/tables/cells.csv",
            code=[f"{PAPER}/figure_{n}.py", *SHARED_CODE],
            interventions=INTERVENTIONS if n == 8 else [],
        output:
            report(
                f"{ROOT}/figures/figure_{n}.{PICTURES[0]}",
                caption=f"../report/figure_{n}.rst",
                category="Figures",
                labels={"figure": str(n)},
            ),
            [f"{ROOT}/figures/figure_{n}.{kind}" for kind in [*PICTURES[1:], "csv"]],
        log:
            f"{LOGS}/figures/figure_{n}.log",
        benchmark:
            f"{BENCHMARKS}/figures/figure_{n}.tsv"
        conda:
            ENVIRONMENT
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            n=n,
            settings=study.paper_params(),
        message:
            "Figure {params.n}"
        shell:
            'rolewise figure {params.n} --configfile "$ROLEWISE_CONFIG" > {log:q} 2>&1'


rule judge_claims:
    """Hold the study's findings against the results."""
    input:
        cells=f"{ROOT}/tables/cells.csv",
        code=SHARED_CODE,
    output:
        f"{ROOT}/claims/claims.json",
        report(
            f"{ROOT}/claims/claims.md",
            caption="../report/claims.rst",
            category="Claims",
            labels={"claims": "ledger"},
        ),
    log:
        f"{LOGS}/claims.log",
    benchmark:
        f"{BENCHMARKS}/claims.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        settings=study.paper_params(),
    message:
        "Claims ledger"
    shell:
        'rolewise claims --configfile "$ROLEWISE_CONFIG" > {log:q} 2>&1'


rule write_report:
    """Write the static report: overview, tables, figures, cells, trajectory browser."""
    input:
        tables=TABLE_FILES,
        figures=FIGURE_FILES,
        claims=CLAIM_FILES,
        code=REPORT_CODE,
    output:
        f"{ROOT}/report/index.html",
    log:
        f"{LOGS}/report.log",
    benchmark:
        f"{BENCHMARKS}/report.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        settings=study.paper_params(),
    message:
        "Report"
    shell:
        'rolewise report --configfile "$ROLEWISE_CONFIG" > {log:q} 2>&1'
