"""`python -m dibs` is the command `dibs`."""

import sys

from dibs.cli import main

sys.exit(main())
