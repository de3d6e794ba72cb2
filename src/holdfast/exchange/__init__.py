"""What releases and ledgers say, in the formats of others: SDMX-CSV, Croissant, the OpenDP registry, dp_accounting."""
