"""Backtest: the past, or simulated sites, through the same judgement with any configuration of the score."""
