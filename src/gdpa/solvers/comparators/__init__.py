"""The methods that the paper compares with, and the program that its authors ran.

They serve comparisons and the reproduction of the paper. One solver per file.
"""
