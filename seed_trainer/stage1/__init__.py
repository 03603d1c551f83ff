"""Stage 1 data: episodes of a policy, hindsight skills about them, and the file that supervised training reads."""
