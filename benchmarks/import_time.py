"""CPU-seconds of `import baggraph`, and what it loads: median of several fresh processes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

CODE = """
import sys, time
start = time.process_time()
import baggraph
print(time.process_time() - start, *(m for m in ("torch", "matplotlib", "ray", "pandas", "numpy") if m in sys.modules))
"""


def main() -> None:
    runs = [subprocess.check_output([sys.executable, "-c", CODE], text=True).split() for _ in range(7)]
    seconds = statistics.median(float(run[0]) for run in runs)
    if "--json" in sys.argv:
        print(json.dumps({"cpu_seconds": seconds, "loads": runs[0][1:]}))
    else:
        loaded = ", ".join(runs[0][1:]) or "nothing heavy"
        print(f"import baggraph: {seconds:.4f} CPU-s (median of {len(runs)}), loads {loaded}")


if __name__ == "__main__":
    main()
