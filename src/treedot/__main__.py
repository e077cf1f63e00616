"""``python -m treedot``."""

import sys

from treedot.cli import main

sys.exit(main())
