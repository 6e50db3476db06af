"""Recipes to result tables: plan, skip what is done, run, append."""
