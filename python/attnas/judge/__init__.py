"""Whether a change is better: attnas judge, campaigns of many ideas, attnas.decide."""
