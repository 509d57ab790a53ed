"""`python -m benchmarks`: every measurement of `make bench`."""

from benchmarks.run import main

main()
