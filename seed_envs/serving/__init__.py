"""``seed-serve``: environments behind one OpenEnv server. Nothing here is imported by ``import seed_envs``."""
