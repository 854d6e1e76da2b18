"""`python -m lbmtune`."""

from lbmtune.cli import main

if __name__ == "__main__":
    main()
