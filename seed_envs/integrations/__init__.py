"""Adapters to other people's trainers, evaluators and agent loops; each is imported when it is asked for."""
