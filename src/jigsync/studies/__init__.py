"""The paper's tables and ours: each study is one command, a CSV and a picture."""
