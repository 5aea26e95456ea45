"""Canaries: pages whose right answer is known, fetched on a schedule, read, classified and checked."""
