"""Runs another module as a program, in slow motion: what stands for the thinking of a model takes
long enough for a viewer to kill it in the middle.

    python -m hardsave.cli.demo.slow_motion MODULE [ARGUMENT...]
"""

import runpy
import sys
import time

TIMES = 8

if __name__ == "__main__":
    _sleep = time.sleep
    time.sleep = lambda seconds: _sleep(TIMES * float(seconds))
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
