"""Traffic: what crawlers report, decoded and checked."""
