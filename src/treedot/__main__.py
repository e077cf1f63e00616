"""The program ``treedot``, also ``python -m treedot``."""


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
    """Install the signal handlers; block the signals while the handlers are imported."""
    import _signal  # type: ignore[import-not-found] # the C part of signal: importing signal takes longer

    blocked = getattr(_signal, "pthread_sigmask", None)  # Windows has none
    before = blocked and blocked(_signal.SIG_BLOCK, (_signal.SIGINT, _signal.SIGTERM))
    from treedot._runtime.ending import take_signals

    take_signals()
    if blocked:
        blocked(_signal.SIG_SETMASK, before)


if __name__ == "__main__":
    raise SystemExit(main())
