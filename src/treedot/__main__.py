"""The program ``treedot``, which is also ``python -m treedot``."""


def main() -> int:
    """Run the command line of this process; return the exit code."""
    _take_signals()
    from treedot._runtime.ending import ignore_signals, open_closed_streams
    from treedot.cli import main as run

    open_closed_streams()
    try:
        return run()
    finally:
        ignore_signals()


def _take_signals() -> None:
    """Handle signals from now on; those that come while the handlers are imported wait for them."""
    import _signal  # type: ignore[import-not-found] # the core of signal, which takes longer to import

    blocked = getattr(_signal, "pthread_sigmask", None)  # Windows has none
    before = blocked and blocked(_signal.SIG_BLOCK, (_signal.SIGINT, _signal.SIGTERM))
    from treedot._runtime.ending import take_signals

    take_signals()
    if blocked:
        blocked(_signal.SIG_SETMASK, before)


if __name__ == "__main__":
    raise SystemExit(main())
