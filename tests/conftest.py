"""What the whole suite shares: Hypothesis profiles, ``--rewrite``, and when it runs on all cores.

HYPOTHESIS_PROFILE chooses a profile, CI has its own default. ``--rewrite`` writes the golden
dialogues of ``transcripts`` anew.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

WITHOUT_EXPLAIN = (Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink)

# ci: the same examples on every machine, and no verdict that rests on a clock.
settings.register_profile(
    "ci",
    max_examples=200,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    phases=WITHOUT_EXPLAIN,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "dev",
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    print_blob=True,
    phases=WITHOUT_EXPLAIN,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak",
    max_examples=20_000,
    stateful_step_count=100,
    deadline=None,
    phases=WITHOUT_EXPLAIN,
    suppress_health_check=list(HealthCheck),
)
# branches: for the tests of coverage. A branch that needs more examples needs a test of its own.
settings.register_profile("branches", settings.get_profile("ci"), max_examples=20)
# replay: only what is written down in a test or was found before.
settings.register_profile("replay", deadline=None, phases=(Phase.explicit, Phase.reuse))
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="write golden files anew: read the diff"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """A process for each core, by default only for the whole suite.

    What somebody names runs in the one process that can be debugged and measured: starting workers
    would take longer than it. ``-n logical`` or ``-n 2`` has it otherwise, and so has ``-n 0``.
    """
    named = config.args_source == pytest.Config.ArgsSource.ARGS
    return 0 if named and config.option.numprocesses == "auto" else None
