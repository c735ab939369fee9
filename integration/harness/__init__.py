"""Runs the folders in `integration/scenarios` against a real worker on the local stack; see `integration/README.md`."""
