"""Context of earlier work: what happened, the state it came to, and ways of packaging either for a prompt."""
