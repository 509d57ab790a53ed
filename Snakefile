# The whole study as one graph: data and models, training, evaluation, tables, figures, claims, report.
#
#   snakemake --cores all                                   everything, on config.yaml
#   snakemake -n                                            what would run, and why
#   snakemake --cores 2 results/cells/CELL/seed0/summary.json   one cell (`rolewise grid` lists them)
#   snakemake --cores 2 figures                             redraw, never train
#   snakemake --cores all --configfile workflow/presets/NAME.yaml
#
# Rules are thin: each calls one `rolewise` subcommand. Params carry only the settings that change a
# result, and no training depends on source files, so that editing code never retrains by itself;
# `rolewise audit` says what has become stale.
from snakemake.utils import min_version

min_version("9.20")


configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/paper.smk"


rule all:
    """Tables, figures, claims and report, with everything behind them."""
    input:
        TABLE_FILES,
        FIGURE_FILES,
        CLAIM_FILES,
        f"{ROOT}/report/index.html",


if not study.config.frozen:

    include: "workflow/rules/data.smk"
    include: "workflow/rules/models.smk"
    include: "workflow/rules/train.smk"
    include: "workflow/rules/evaluate.smk"
    include: "workflow/rules/analyse.smk"

elif ROOT == REDRAWN:

    include: "workflow/rules/reference.smk"


report: "workflow/report/workflow.rst"


onerror:
    print(
        "Nothing finished is lost: rerun the same command to continue. "
        "`rolewise status` shows which cells failed and why."
    )
