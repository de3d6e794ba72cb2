"""Whole, non-negative tables of margins in every area: from the best linear estimate down the hierarchy."""
