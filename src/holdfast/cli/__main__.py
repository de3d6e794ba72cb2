"""Run the command with `python -m holdfast.cli`."""

from holdfast.cli.command import main

if __name__ == "__main__":
    main()
