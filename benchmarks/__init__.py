"""What costs how much: each module prints a small table of figures and ratios, measured in one run.

`python -m benchmarks` runs all of them, `python -m benchmarks ehr` one.
"""
