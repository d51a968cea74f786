"""Training of the learned measurers; needs the extra 'learn' (torch). Nothing that solves imports it."""
