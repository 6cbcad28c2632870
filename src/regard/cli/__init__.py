"""The command line: one file a verb. Torch is imported by the verbs that need it, when they run."""
