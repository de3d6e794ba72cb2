"""The facts of a release, each one frozen value that the job makes; plan, report and certificate are views of them."""
