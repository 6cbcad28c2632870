"""The program ``regard``, also ``python -m regard``. Ctrl-C ends it without a traceback, also during the imports."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line, or answer a shell that completes a word."""
    try:
        if os.environ.get("_REGARD_COMPLETE", "").startswith("complete_"):
            from regard.cli.completion import answer  # noqa: PLC0415

            sys.exit(answer(os.environ))
        signal.signal(signal.SIGINT, lambda *_: sys.exit(130))  # there is nothing to clean up yet
        from regard.cli.main import main as run  # noqa: PLC0415

        signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:  # between the two handlers
        sys.exit(130)


if __name__ == "__main__":
    main()
