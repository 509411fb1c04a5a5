"""The sections of a run's page, one per module.

Each module has section(run) -> Section, or None where the run has nothing to say there.
"""
