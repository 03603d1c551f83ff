"""The commands of ``seed-train``; one module each, with ``main(argv)``."""
