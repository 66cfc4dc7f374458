"""The programs of this folder run on their own as well, so they find each other by their plain names."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
