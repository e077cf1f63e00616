from hypothesis import HealthCheck, settings

# Compiled code makes the first example of a test slow, and examples must not change from run to run.
settings.register_profile(
    "treedot", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("treedot")
