"""Errors a user can act on; the command line prints them as one line and exits with their code."""


class RolewiseError(Exception):
    """Something is wrong that the message explains: what, where and what to do."""

    exit_code = 2


class ConfigError(RolewiseError):
    """The configuration is invalid; `problems` lists every mistake found."""

    def __init__(self, problems: list[str]):
        self.problems = problems
        super().__init__("\n".join(problems))


class DataError(RolewiseError):
    """A data file or model folder is missing, corrupt or breaks an assertion."""


class StateError(RolewiseError):
    """Resumable state is locked by another process or belongs to another configuration."""


class TrainingError(RolewiseError):
    """Training cannot go on: non-finite loss, stale adapter, missing episode."""

    exit_code = 3


class SandboxError(RolewiseError):
    """The machine offers no sandbox of the required tier."""


class Interrupted(RolewiseError):
    """A signal asked the run to stop; state was saved, rerun the same command to continue."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code
