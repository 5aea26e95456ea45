"""Search bots on the user's own domains: who came, really, and where the visits went."""
