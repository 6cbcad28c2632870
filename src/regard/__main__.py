"""``python -m regard`` is ``regard``. Both begin here, so that Ctrl-C is quiet from the first moment on."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Import the command line and run it, or only answer a shell that completes a word."""
    try:
        if os.environ.get("_REGARD_COMPLETE", "").startswith("complete_"):
            from regard.cli.completion import answer  # noqa: PLC0415

            sys.exit(answer(os.environ))
        signal.signal(signal.SIGINT, lambda *_: sys.exit(130))  # nothing is begun that would have to be ended
        from regard.cli.main import main as run  # noqa: PLC0415

        signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:  # in the moment between
        sys.exit(130)


if __name__ == "__main__":
    main()
