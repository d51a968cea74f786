"""The paper's method, pure: relative poses -> absolute turns and places by synchronization."""
