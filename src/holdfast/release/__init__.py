"""The job: from a spec to a release that can be signed, and the ledger of what was spent."""
