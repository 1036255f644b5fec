"""What can be wrong: one YAML file a blocker, its cases inside, and the loader that compiles its condition."""
