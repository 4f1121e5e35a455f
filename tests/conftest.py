"""What all tests have in common."""

from hypothesis import HealthCheck, settings

# how long an example takes says how busy the machine is, and nothing of the code
settings.register_profile("twgen", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# pytest tests/cli/test_broken_records.py --hypothesis-profile=attack
settings.register_profile("attack", settings.get_profile("twgen"), max_examples=20_000)
settings.load_profile("twgen")
