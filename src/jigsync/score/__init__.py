"""solutions and truths -> scores, with their intervals."""
