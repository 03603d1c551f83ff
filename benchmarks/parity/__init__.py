"""Parity with the originals: everything a published number depends on, compared step by step."""
