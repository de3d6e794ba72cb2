"""The nearest table on a hierarchy: slopes merged upwards, values sent down."""
