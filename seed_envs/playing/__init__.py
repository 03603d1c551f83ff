"""Playing and looking on: one game with hints and undo, stored episodes turn by turn, and a page for both."""
