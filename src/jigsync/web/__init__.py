"""The workbench: a local page and its HTTP interface. Needs the extra `web`."""
